// The functions of expressions (`mxcore.fusion.expr.FUNCTIONS`) for float and double, with NumPy's meaning.
#pragma once
#include "mx.cuh"

#define UNARY(name, text)                          \
    DEVICE float name(float x) { return text; }    \
    DEVICE double name(double x) { return text; }
#define BINARY(name, text)                                  \
    DEVICE float name(float x, float y) { return text; }    \
    DEVICE double name(double x, double y) { return text; }
// CUDA's functions, and C's, have overloads for both.
#define SAME(name, other) UNARY(name, ::other(x))

namespace m {

SAME(exp, exp) SAME(expm1, expm1) SAME(log, log) SAME(log2, log2) SAME(log10, log10) SAME(log1p, log1p)
SAME(sqrt, sqrt) SAME(cbrt, cbrt) SAME(sin, sin) SAME(cos, cos) SAME(tan, tan) SAME(arcsin, asin) SAME(arccos, acos)
SAME(arctan, atan) SAME(sinh, sinh) SAME(cosh, cosh) SAME(tanh, tanh) SAME(arcsinh, asinh) SAME(arccosh, acosh)
SAME(arctanh, atanh) SAME(erf, erf) SAME(floor, floor) SAME(ceil, ceil) SAME(trunc, trunc) SAME(fix, trunc)
SAME(rint, rint) SAME(abs, fabs) SAME(gamma, tgamma) SAME(lgamma, lgamma)

UNARY(rsqrt, 1 / ::sqrt(x))
UNARY(rcbrt, 1 / ::cbrt(x))
UNARY(square, x * x)
UNARY(reciprocal, 1 / x)
UNARY(relu, x < 0 ? 0 : x)
UNARY(sign, x > 0 ? 1 : x < 0 ? -1 : x)  // of a NaN, NaN
UNARY(sigmoid, (x < 0 ? ::exp(x) : 1) / (1 + ::exp(-::fabs(x))))
UNARY(softplus, (x > 0 ? x : 0) + ::log1p(::exp(-::fabs(x))))
DEVICE bool isnan(float x) { return x != x; }
DEVICE bool isnan(double x) { return x != x; }
DEVICE bool isinf(float x) { return ::fabs(x) == (float)INFINITY; }
DEVICE bool isinf(double x) { return ::fabs(x) == INFINITY; }

BINARY(maximum, x > y || x != x ? x : y)
BINARY(minimum, x < y || x != x ? x : y)
BINARY(power, ::pow(x, y))
BINARY(hypot, ::hypot(x, y))
BINARY(arctan2, ::atan2(x, y))
BINARY(fmod, ::fmod(x, y))

// The remainder with the divisor's sign.
template <class F> DEVICE F mod_of(F x, F y) {
    F r = ::fmod(x, y);
    return r != 0 && (r < 0) != (y < 0) ? r + y : r != 0 ? r : ::copysign(F(0), y);
}
BINARY(mod, mod_of(x, y))
template <class F> DEVICE F floordiv_of(F x, F y) {
    if (y == 0) return x / y;
    F r = ::fmod(x, y), q = (x - r) / y;
    if (r != 0 && (r < 0) != (y < 0)) q -= 1;
    F whole = ::floor(q);
    return q == 0 ? ::copysign(F(0), x / y) : q - whole > F(0.5) ? whole + 1 : whole;
}
BINARY(floordiv, floordiv_of(x, y))

DEVICE double digamma(double x) {
    const double pi = 3.14159265358979323846;
    double total = 0;
    if (x <= 0) {
        if (x == ::floor(x)) return NAN;
        total = -pi / ::tan(pi * (x - ::floor(x + 0.5)));
        x = 1 - x;
    }
    for (; x < 10; x += 1) total -= 1 / x;
    double z = 1 / (x * x);  // the asymptotic series, with Bernoulli's numbers
    double tail = 1 / 240. - z * (1 / 132. - z * (691 / 32760. - z / 12));
    tail = z * (1 / 12. - z * (1 / 120. - z * (1 / 252. - z * tail)));
    return total + ::log(x) - 0.5 / x - tail;
}
DEVICE float digamma(float x) { return (float)digamma((double)x); }

DEVICE double erfinv(double x) {
    double a = ::fabs(x);
    if (!(a < 1)) return a == 1 ? ::copysign((double)INFINITY, x) : NAN;
    double l = ::log1p(-a * a), t = 4.3307467508 + 0.5 * l;
    double y = ::sqrt(::sqrt(t * t - l / 0.147) - t);  // Winitzki's estimate, then Halley's steps
    for (int i = 0; i < 3; i++) {
        double wrong = a > 0.5 ? (1 - a) - ::erfc(y) : ::erf(y) - a;  // erf(y) - a, without cancellation
        y -= wrong / (1.1283791670955126 * ::exp(-y * y) + y * wrong);
    }
    return ::copysign(y, x);
}
DEVICE float erfinv(float x) { return (float)erfinv((double)x); }

template <class F> DEVICE F where(bool condition, F x, F y) { return condition ? x : y; }

}  // namespace m

#undef UNARY
#undef BINARY
#undef SAME
