"""PINNsformer and its plain baseline in torch functions, from weights by their
published names, with derivatives by their coordinates."""

import torch
import torch.nn.functional as F

# Small; those of the published models are in pinnsformer_test.cc.
DIM, HEADS, FF, HIDDEN, STEPS, STEP = 8, 2, 12, 16, 5, 0.1
FORMULAS = {"softmax": lambda s: s.softmax(-1),
            "cubic": lambda s: s ** 3 / s.shape[-1] ** 0.5,
            "square": lambda s: s ** 2 / s.shape[-1] ** 0.5}


def shapes(plain):
    shapes = {}

    def linear(name, out, into):
        shapes[name + ".weight"] = (out, into)
        shapes[name + ".bias"] = (out,)

    def wavelet(name):
        shapes[name + ".w1"] = shapes[name + ".w2"] = (1,)

    def mlp(name, into, hidden, out):
        for i, (o, n) in enumerate([(hidden, into), (hidden, hidden),
                                    (out, hidden)]):
            linear(f"{name}.{2 * i}", o, n)
        wavelet(name + ".1")
        wavelet(name + ".3")

    if plain:
        for i, (o, n) in enumerate([(HIDDEN, 2), (HIDDEN, HIDDEN),
                                    (HIDDEN, HIDDEN), (1, HIDDEN)]):
            linear(f"linear.{2 * i}", o, n)
        return shapes
    linear("linear_emb", DIM, 2)
    for part in ("encoder", "decoder"):
        name = part + ".layers.0"
        shapes[name + ".attn.in_proj_weight"] = (3 * DIM, DIM)
        shapes[name + ".attn.in_proj_bias"] = (3 * DIM,)
        linear(name + ".attn.out_proj", DIM, DIM)
        mlp(name + ".ff.linear", DIM, FF, DIM)
        wavelet(name + ".act1")
        wavelet(name + ".act2")
        wavelet(part + ".act")
    mlp("linear_out", DIM, HIDDEN, 1)
    return shapes


# Halved, so that the sines of what a cubic makes are of small numbers, which are
# exact to rounding.
def weights(plain):
    return {name: torch.randn(shape, dtype=torch.double) / (2 * shape[-1] ** 0.5)
            for name, shape in shapes(plain).items()}


def linear(w, name, x):
    return F.linear(x, w[name + ".weight"], w[name + ".bias"])


def wavelet(w, name, x):
    return w[name + ".w1"] * torch.sin(x) + w[name + ".w2"] * torch.cos(x)


def mlp(w, name, x):
    for i in (0, 2):
        x = wavelet(w, f"{name}.{i + 1}", linear(w, f"{name}.{i}", x))
    return linear(w, name + ".4", x)


def attention(w, name, x, source, formula):
    parts = zip((x, source, source), w[name + ".in_proj_weight"].chunk(3),
                w[name + ".in_proj_bias"].chunk(3))
    q, k, v = (F.linear(*part).unflatten(-1, (HEADS, -1)).transpose(1, 2)
               for part in parts)
    scores = q @ k.transpose(-1, -2) / (DIM // HEADS) ** 0.5
    rows = (FORMULAS[formula](scores) @ v).transpose(1, 2).flatten(2)
    return linear(w, name + ".out_proj", rows)


def stack(w, part, x, formula, source=None):
    name = part + ".layers.0"
    y = wavelet(w, name + ".act1", x)
    x = x + attention(w, name + ".attn", y, y if source is None else source,
                      formula)
    x = x + mlp(w, name + ".ff.linear", wavelet(w, name + ".act2", x))
    return wavelet(w, part + ".act", x)


def value(w, points, formula):
    if formula is None:
        for i in (0, 2, 4):
            points = torch.tanh(linear(w, f"linear.{i}", points))
        return linear(w, "linear.6", points)
    x = linear(w, "linear_emb", points)
    e = stack(w, "encoder", x, formula)
    return mlp(w, "linear_out", stack(w, "decoder", x, formula, e))


def sequences(points):
    rows = points.unsqueeze(1).repeat(1, STEPS, 1)
    rows[:, :, 1] += STEP * torch.arange(STEPS, dtype=torch.double)
    return rows


def grad(y, x):
    return torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)[0]


def values(w, points, formula):
    """u and what a wave equation needs of it; third derivatives are in the
    gradient of its loss by one matrix."""
    rows = sequences(points).requires_grad_()
    first = "linear_emb" if formula else "linear.0"
    matrix = w[first + ".weight"].clone().requires_grad_()
    u = value({**w, first + ".weight": matrix}, rows, formula)
    du = grad(u, rows)
    ddu = [grad(du[..., i], rows) for i in (0, 1)]
    residual = ddu[1][..., 1] - 4 * ddu[0][..., 0]
    loss = residual.square().mean()
    return {"points": points, "sequences": rows, "u": u, "du": du,
            "u_x": ddu[0], "u_t": ddu[1],
            "gradient": torch.autograd.grad(loss, matrix)[0]}
