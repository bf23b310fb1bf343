"""A training step of a transformer that uses torch's own attention."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        batch, length, width = x.shape
        qkv = self.qkv(self.before(x)).view(batch, length, 3, self.heads, -1)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))  # may-trace: MEM312
        return x + self.mlp(self.between(x))


blocks = nn.Sequential(*[Block(128, 4) for _ in range(4)])
embed, head = nn.Embedding(1000, 128), nn.Linear(128, 1000)
parameters = [*blocks.parameters(), *embed.parameters(), *head.parameters()]
optimizer = torch.optim.AdamW(parameters, lr=1e-3)
words = torch.randint(0, 1000, (4, 129))
for _ in range(3):
    scores = head(blocks(embed(words[:, :-1])))
    loss = nn.functional.cross_entropy(scores.flatten(0, 1), words[:, 1:].flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
