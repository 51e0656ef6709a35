"""Nystromformer's models for Long Range Arena in plain torch functions, from
weights by its names, with softmax attention or its own."""

import nystrom_twin
import torch
import torch.nn.functional as F

# Small, but for what the shapes of its tables decide.
SIZES = {"lra_text": dict(vocabulary=40, positions=24, classes=3, towers=1),
         "lra_retrieval": dict(vocabulary=40, positions=24, classes=2, towers=2),
         "lra_nystrom": dict(vocabulary=40, positions=24, classes=3, towers=2,
                             landmarks=4, conv=5)}
DIM, HIDDEN, DEPTH, HEADS = 32, 48, 2, 4


def shapes(vocabulary, positions, classes, towers, conv=0, **_):
    shapes = {
        "model.embeddings.word_embeddings.weight": (vocabulary, DIM),
        "model.embeddings.position_embeddings.weight": (positions, DIM)}

    def linear(name, out, into):
        shapes[name + ".weight"] = (out, into)
        shapes[name + ".bias"] = (out,)

    def norm(name):
        shapes[name + ".weight"] = shapes[name + ".bias"] = (DIM,)

    for i in range(DEPTH):
        name = f"model.transformer_{i}"
        norm(name + ".norm1")
        norm(name + ".norm2")
        for part in ("W_q", "W_k", "W_v", "ff"):
            linear(f"{name}.mha.{part}", DIM, DIM)
        if conv > 0:
            shapes[name + ".mha.attn.conv.weight"] = (HEADS, 1, conv, 1)
        linear(name + ".mlpblock.0", HIDDEN, DIM)
        linear(name + ".mlpblock.3", DIM, HIDDEN)
    norm("model.norm")
    linear("seq_classifer.mlpblock.0", HIDDEN, DIM * (4 if towers == 2 else 1))
    linear("seq_classifer.mlpblock.2", classes, HIDDEN)
    return shapes


def weights(**size):
    return {name: torch.randn(shape) / shape[-1] ** 0.5
            for name, shape in shapes(**size).items()}


def tokens(vocabulary, positions, towers, **_):
    """Of different lengths, padded with zeros, which stand within them too."""
    rows = torch.randint(1, vocabulary, (3 * towers, positions))
    lengths = torch.randint(5, positions + 1, (3 * towers,))
    lengths[0] = positions
    rows[:, 2] = 0
    rows[torch.arange(positions) >= lengths[:, None]] = 0
    return rows, lengths


def attention(w, name, x, mask, landmarks):
    def project(part):
        rows = F.linear(x, w[f"{name}.{part}.weight"], w[f"{name}.{part}.bias"])
        return rows.unflatten(-1, (HEADS, -1)).transpose(1, 2)

    q, k, v = project("W_q"), project("W_k"), project("W_v")
    if landmarks > 0:
        conv = w[name + ".attn.conv.weight"]
        out = nystrom_twin.nystrom(q, k, v, mask, conv, landmarks,
                                   nystrom_twin.softmax)
        return F.linear(out.transpose(1, 2).flatten(2), w[name + ".ff.weight"],
                        w[name + ".ff.bias"])
    scores = q @ k.transpose(-1, -2) / (DIM // HEADS) ** 0.5
    scores = scores - 1e6 * (1 - mask[:, None, None])
    out = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
    return F.linear(out, w[name + ".ff.weight"], w[name + ".ff.bias"])


def features(w, rows, landmarks):
    def norm(name, x):
        return F.layer_norm(x, (DIM,), w[name + ".weight"], w[name + ".bias"])

    mask = (rows != 0).float()
    places = w["model.embeddings.position_embeddings.weight"]
    x = w["model.embeddings.word_embeddings.weight"][rows] + places
    for i in range(DEPTH):
        name = f"model.transformer_{i}"
        x = x + attention(w, name + ".mha", norm(name + ".norm1", x), mask,
                          landmarks)
        y = F.linear(norm(name + ".norm2", x), w[name + ".mlpblock.0.weight"],
                     w[name + ".mlpblock.0.bias"])
        x = x + F.linear(F.gelu(y), w[name + ".mlpblock.3.weight"],
                         w[name + ".mlpblock.3.bias"])
    return (norm("model.norm", x) * mask[:, :, None]).mean(1)


def logits(w, rows, towers, landmarks=0, **_):
    x = features(w, rows, landmarks)
    if towers == 2:
        a, b = x[0::2], x[1::2]
        x = torch.cat([a, b, a * b, a - b], 1)
    name = "seq_classifer.mlpblock"
    x = F.relu(F.linear(x, w[name + ".0.weight"], w[name + ".0.bias"]))
    return F.linear(x, w[name + ".2.weight"], w[name + ".2.bias"])
