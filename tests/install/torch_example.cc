#include <polyattn/torch/attention.h>
#include <torch/torch.h>

#include <iostream>

int main() {
  torch::Tensor q = torch::randn({2, 4, 128, 64}).requires_grad_();
  torch::Tensor k = torch::randn({2, 4, 128, 64}), v = torch::randn_like(k);
  torch::Tensor o = polyattn::attention(
      q, k, v,
      polyattn::AttentionOptions().activation("x^3/sqrt(N)").causal(true));
  o.sum().backward();
  std::cout << o.sizes() << ' ' << q.grad().sizes() << '\n';
}
