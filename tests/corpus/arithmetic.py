from tir.script import tir as T


@T.prim_func
def precedence(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), n: T.int32, m: T.int32):
    B[0] = (n + m) * n - m * (n - m) - (n - m - 1)
    B[1] = n - (m - (n - 3))
    B[2] = n * (m * 2) + n * m * 2


@T.prim_func
def division(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), n: T.int32, m: T.int32):
    B[0] = n // 4 * 4 + n % 4
    B[1] = (n + 3) // 4
    B[2] = n // (m // 2)
    B[3] = T.truncdiv(n, 4) + T.truncmod(n, m)
    B[4] = T.floordiv(n, m) - T.floormod(n, 7)
    B[5] = T.ceildiv(n, 8)


@T.prim_func
def exact_nodes(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), n: T.int32, m: T.int32):
    B[0] = T.Add(1, 2)
    B[1] = T.Mul(n, 1)
    B[2] = T.Add(n, 0)
    B[3] = T.Sub(n, 0)
    B[4] = T.FloorDiv(n, 1)
    B[5] = T.FloorMod(n, 1)
    B[6] = T.Mul(T.Add(0, n), T.Mul(1, m))
    B[7] = T.Min(3, 4) + T.Max(T.Min(1, 2), n)
    B[8] = T.Div(8, 2) + T.Mod(9, 4)


@T.prim_func
def exact_comparisons(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), n: T.int32, m: T.int32):
    B[0] = T.Select(T.EQ(1, 2), n, m)
    B[1] = T.Select(T.And(True, n < m), n, m)
    B[2] = T.Select(T.Or(n < m, False), n, m)
    B[3] = T.Select(T.Not(True), n, m)
    B[4] = T.Select(T.LT(T.float32(1), T.float32(2)), n, m)


@T.prim_func
def comparisons(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), n: T.int32, m: T.int32):
    B[0] = T.Select(n < m, 1, 0) + T.Select(n <= m, 1, 0) + T.Select(n > m, 1, 0)
    B[1] = T.Select(n >= m, 1, 0) + T.Select(n == m, 1, 0) + T.Select(n != m, 1, 0)


@T.prim_func
def logic(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), n: T.int32, m: T.int32):
    B[0] = T.Select(n < m and m < 4 and n > 1, n, m)
    B[1] = T.Select(n < m and (m < 4 and n > 1), n, m)
    B[2] = T.Select((n < m or m < 4) and not n > 1, n, m)
    B[3] = T.Select(not (n < m or m < 4) or n == 1, n, m)
    B[4] = T.Select(n < m or (m < 4 or n > 1), n, m)
    B[5] = T.Select((n < m) == (m < 4), n, m)


@T.prim_func
def bits(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), n: T.int32, m: T.int32):
    B[0] = n & 255 | m << 8 ^ n >> 2
    B[1] = (n | m) & 7
    B[2] = n << (m & 3)
    B[3] = ~n
    B[4] = T.bitwise_and(3, 5)
    B[5] = T.bitwise_xor(n, m) + T.shift_left(1, n)
    B[6] = (n << 1) + (m >> 1)
    B[7] = n << 1 << m


@T.prim_func
def negatives(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), n: T.int32, m: T.int32):
    B[0] = -n
    B[1] = n * -3
    B[2] = -5 + n
    B[3] = n - -4
    B[4] = -2147483648
    B[5] = -7 // n + n % -3
    B[6] = 0 - n


@T.prim_func
def min_max(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), n: T.int32, m: T.int32):
    B[0] = T.min(n, m)
    B[1] = T.max(T.min(n, 7), 0)
    B[2] = T.min(T.max(n, m), T.max(n - 1, m + 1))


@T.prim_func
def integer_functions(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), n: T.int32, m: T.int32):
    B[0] = T.abs(n)
    B[1] = T.popcount(n)
    B[2] = T.clz(n)
    B[3] = T.Select(T.likely(n < m), 1, 0)


@T.prim_func
def casts(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), n: T.int32, m: T.int32):
    B[0] = T.Cast("int32", T.Cast("int8", n))
    B[1] = T.cast(T.Cast("float32", n) * 2.5, "int32")
    B[2] = T.int32(T.int64(n) * T.int64(m))
    B[3] = T.Cast("int32", T.Cast("uint8", n) + T.uint8(3))
    B[4] = T.Cast("int32", n < m)


@T.prim_func
def int64_math(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), n: T.int32, m: T.int32):
    k: T.int64 = T.Cast("int64", n) * 4 + T.int64(1) - T.int64(2) // T.Cast("int64", m)
    B[0] = T.Cast("int32", k % 16)


@T.prim_func
def select_nested(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), n: T.int32, m: T.int32):
    B[0] = T.Select(n < 0, T.Select(m < 0, 0, 1), T.Select(m < 0, 2, 3))
    B[1] = T.if_then_else(n < m, A[n], T.if_then_else(n == m, 0, A[m]))


@T.prim_func
def let_expression(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), n: T.int32, m: T.int32):
    x = T.int32()
    y = T.int32()
    B[0] = T.Let(x * x, where={x: n + m})
    B[1] = T.Let(T.Let(x + y, where={y: x * 2}), where={x: n})


@T.prim_func
def indirect(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), n: T.int32, m: T.int32):
    B[A[n]] = A[A[A[m] + 1] % 16]
