#include <exception>

#include "tests/proof/proof.h"

/// Usage: qkv_proof FILE. Writes what proof.py compares with PyTorch.
int main(int count, char** arguments) try {
  if (count != 2) {
    fmt::print(stderr, "usage: qkv_proof FILE\n");
    return 2;
  }
  qkv::tests::Proof proof;
  qkv::tests::prove_ops(proof);
  qkv::tests::prove_layer_rows(proof);
  qkv::tests::prove_layers(proof);
  qkv::tests::prove_models(proof);
  qkv::tests::prove_optimizers(proof);
  qkv::write_checkpoint(arguments[1], proof.file());
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
