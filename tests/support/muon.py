"""Muon in PyTorch, which has one from 2.9 on (torch.optim.Muon with adjust_lr_fn="match_rms_adamw")."""
import torch


class Muon(torch.optim.AdamW):
    """Muon (Jordan et al. 2024) for the parameters of groups that are `hidden`, as all are by default, else AdamW."""

    @torch.no_grad()
    def step(self):
        every = self.param_groups
        self.param_groups = [group for group in every if not group.get("hidden", True)]
        super().step()
        self.param_groups = every
        for group in every:
            if group.get("hidden", True):
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        self._orthogonal_step(parameter, **group)

    def _orthogonal_step(self, parameter, lr, betas, eps, weight_decay, **_):
        moment = self.state[parameter].setdefault("first_moment", torch.zeros_like(parameter))
        moment.lerp_(parameter.grad, 1 - betas[0])
        ahead = parameter.grad.lerp(moment, betas[0]).flatten(1)
        parameter.mul_(1 - lr * weight_decay)
        parameter.sub_(lr * 0.2 * max(ahead.shape)**0.5 * orthogonal(ahead, eps).view_as(parameter))


def orthogonal(x, epsilon):
    """Five Newton-Schulz iterations on the smaller side, from a norm of 1."""
    x = x / x.double().norm().clamp(min=epsilon).to(x.dtype)
    wide = x if x.shape[0] <= x.shape[1] else x.T
    for _ in range(5):
        gram = wide @ wide.T
        wide = 3.4445 * wide + (-4.775 * gram + 2.0315 * gram @ gram) @ wide
    return wide if x.shape[0] <= x.shape[1] else wide.T
