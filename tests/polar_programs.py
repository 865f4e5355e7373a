"""A function of two inputs with two results, and its derivative: operators of torch and calls of JAX are made of them."""

POLAR = """
@T.prim_func
def polar(x: T.handle, y: T.handle, k: T.int32, s: T.handle, p: T.handle):
    n = T.int32()
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (n,), "float32")
    S = T.match_buffer(s, (n,), "float32")
    P = T.match_buffer(p, (n,), "float32")
    for i in range(n):
        S[i] = X[i] * X[i] + Y[i]
        P[i] = X[i] * Y[i] * T.Cast("float32", k)
"""
BACK = """
@T.prim_func
def back(grad_s: T.handle, grad_p: T.handle, x: T.handle, y: T.handle, k: T.int32, gx: T.handle, gy: T.handle):
    n = T.int32()
    grad_S = T.match_buffer(grad_s, (n,), "float32")
    grad_P = T.match_buffer(grad_p, (n,), "float32")
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (n,), "float32")
    grad_X = T.match_buffer(gx, (n,), "float32")
    grad_Y = T.match_buffer(gy, (n,), "float32")
    for i in range(n):
        grad_X[i] = 2.0 * X[i] * grad_S[i] + Y[i] * T.Cast("float32", k) * grad_P[i]
        grad_Y[i] = grad_S[i] + X[i] * T.Cast("float32", k) * grad_P[i]
"""
