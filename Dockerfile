# docker build -t qkv . && docker run --rm -v qkv-runs:/home/qkv/runs qkv train /usr/share/qkv/configs/bank.toml
FROM debian:12 AS build
WORKDIR /qkv
COPY . .
RUN apt-get update && apt-get install -y --no-install-recommends dpkg-dev && apt-get build-dep -y --no-install-recommends .
RUN script/package

FROM debian:12-slim
COPY --from=build /qkv/build/package/qkv_*.deb /tmp/
RUN apt-get update && apt-get install -y --no-install-recommends /tmp/qkv_*.deb && rm -rf /tmp/qkv_*.deb /var/lib/apt/lists/*
RUN useradd --create-home qkv
USER qkv
WORKDIR /home/qkv
RUN mkdir runs
VOLUME /home/qkv/runs
ENTRYPOINT ["qkv"]
