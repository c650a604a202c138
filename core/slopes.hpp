// Primitives backwards: from G = dL/d(primitive) on a tile to per-coordinate sums and input gradients.
#pragma once
#include "primitives.hpp"

namespace mercer::MERCER_ISA {

// What coordinate (x, z) adds per unit of G: `scale` to the first row of the view's gradient, dx and dz to
// the inputs.  For products these multiply the other coordinates' product.
template <class T> struct Slope {
    Vec<T> scale, dx, dz;
};

template <class T> struct DotSlope {
    static MERCER_MEMBER Slope<T> at(Vec<T> x, Vec<T> z) { return {x * z, z, x}; }
};
template <class T> struct DifferencesSlope {
    static MERCER_MEMBER Slope<T> at(Vec<T> x, Vec<T> z) {
        Vec<T> t = x - z;
        return {t * t, T(2) * t, T(-2) * t};
    }
};
template <class T> struct AbsoluteSlope {
    static MERCER_MEMBER Slope<T> at(Vec<T> x, Vec<T> z) {
        Vec<T> t = x - z, sign = t == T(0) ? Vec<T>{} : vcopysign(splat<T>(1), t);
        return {vabs(t), sign, -sign};
    }
};
template <class T> struct MinimumSlope {  // at x = z each side takes half
    static MERCER_MEMBER Slope<T> at(Vec<T> x, Vec<T> z) {
        Vec<T> one = splat<T>(1), half = splat<T>(0.5);
        Vec<T> g = x < z ? one : (x > z ? Vec<T>{} : half);
        return {Vec<T>{}, g, one - g};
    }
};
template <class T> struct ChiSquareSlope {
    static MERCER_MEMBER Slope<T> at(Vec<T> x, Vec<T> z) {
        Vec<T> sum = x + z, t = x - z, q = t / (sum * sum);
        Mask<T> empty = (t == T(0)) & (sum == T(0));
        return {Vec<T>{}, empty ? Vec<T>{} : q * (x + T(3) * z), empty ? Vec<T>{} : -q * (z + T(3) * x)};
    }
};
// Products: `factor` is the coordinate's own term.
template <class T> struct CosinesSlope {
    static MERCER_MEMBER Vec<T> factor(Vec<T> x, Vec<T> z) { return vcos(x - z); }
    static MERCER_MEMBER Slope<T> at(Vec<T> x, Vec<T> z) {
        Vec<T> t = x - z, s = -vsin(t);
        return {s * t, s, -s};
    }
};
template <class T> struct SubsetsSlope {
    static MERCER_MEMBER Vec<T> factor(Vec<T> x, Vec<T> z) { return x * z + T(1); }
    static MERCER_MEMBER Slope<T> at(Vec<T> x, Vec<T> z) { return {x * z, z, x}; }
};
template <class T> struct SignedMinimumSlope {
    static MERCER_MEMBER Vec<T> factor(Vec<T> x, Vec<T> z) {
        return SignedMinimum<T>::step(splat<T>(1), x, z);
    }
    static MERCER_MEMBER Slope<T> at(Vec<T> x, Vec<T> z) {
        Vec<T> g = MinimumSlope<T>::at(vabs(x), vabs(z)).dx, sign = vcopysign(splat<T>(1), x);
        Mask<T> alike = x * z > T(0);
        return {Vec<T>{}, alike ? sign * g : Vec<T>{}, alike ? sign * (T(1) - g) : Vec<T>{}};
    }
};

// Where one view's gradients go.
struct ViewGradient {
    double *scale, *rate;  // d each
    double *x, *z;         // n*d and m*d, or null
};

// Sums: every coordinate on its own.  Per panel and coordinate the rows are summed in registers.
template <class T, class F>
static void sums_back(const View<T>& v, const Tile& tile, const T* G, const ViewGradient& grad) {
    constexpr int P = kPanel<T>, W = kLanes<T>;
    for (int64_t j = 0; j < tile.ld; j += P) {
        const T* z = v.panels + (tile.j0 + j) * v.d;
        for (int64_t k = 0; k < v.d; ++k) {
            const Vec<T> zk[2] = {load(z + k * P), load(z + k * P + W)};
            Vec<T> scale[2] = {}, dz[2] = {};
            for (int64_t i = 0; i < tile.rows; ++i) {
                const Vec<T> x = splat(v.x[(tile.i0 + i) * v.d + k]);
                Vec<T> dx{};
                for (int h = 0; h < 2; ++h) {
                    const Vec<T> g = load(G + i * tile.ld + j + h * W);
                    const Slope<T> s = F::at(x, zk[h]);
                    scale[h] += g * s.scale;
                    if (grad.x) {
                        dx += g * s.dx;
                        dz[h] += g * s.dz;
                    }
                }
                if (grad.x) grad.x[(tile.i0 + i) * v.d + k] += hsum(dx);
            }
            grad.scale[k] += hsum(scale[0] + scale[1]);
            if (grad.z)
                for (int64_t l = 0; l < least(P, tile.cols - j); ++l)
                    grad.z[(tile.j0 + j + l) * v.d + k] += dz[l / W][l % W];
        }
    }
}

// Sum_k w_k sin(x_k - z_k)^2: `scale` takes w sin^2, `rate` its derivative times the phase.
// 0 for x with itself.
template <class T>
static void periodic_back(const View<T>& v, const double* w, const Tile& tile, const T* G,
                          const ViewGradient& grad) {
    constexpr int P = kPanel<T>, W = kLanes<T>;
    const int64_t d = v.d;
    for (int64_t j = 0; j < tile.ld; j += P) {
        const T *plain = v.panels + (tile.j0 + j) * d, *phase = v.phase_panels + (tile.j0 + j) * 2 * d;
        for (int64_t k = 0; k < d; ++k) {
            const double weight = w[k];
            Vec<T> zk[2], sz[2], cz[2], scale[2] = {}, rate[2] = {}, dz[2] = {};
            for (int h = 0; h < 2; ++h) {
                zk[h] = load(plain + k * P + h * W);
                sz[h] = load(phase + 2 * k * P + h * W);
                cz[h] = load(phase + (2 * k + 1) * P + h * W);
            }
            for (int64_t i = 0; i < tile.rows; ++i) {
                const int64_t at = (tile.i0 + i) * d + k;
                const Vec<T> x = splat(v.x[at]);
                const Vec<T> sx = splat(v.phases[2 * at]), cx = splat(v.phases[2 * at + 1]);
                Vec<T> dx{};
                for (int h = 0; h < 2; ++h) {
                    const Vec<T> sine = sine_between(sx, cx, sz[h], cz[h]);
                    const Vec<T> gs = load(G + i * tile.ld + j + h * W) * sine;
                    const Vec<T> slope = gs * (cx * cz[h] + sx * sz[h]);
                    scale[h] += gs * sine;
                    rate[h] += slope * (x - zk[h]);
                    if (grad.x) {
                        dx += slope;
                        dz[h] -= slope;
                    }
                }
                if (grad.x) grad.x[at] += 2 * weight * hsum(dx);
            }
            grad.scale[k] += weight * hsum(scale[0] + scale[1]);
            grad.rate[k] += 2 * weight * hsum(rate[0] + rate[1]);
            if (grad.z)
                for (int64_t l = 0; l < least(P, tile.cols - j); ++l)
                    grad.z[(tile.j0 + j + l) * d + k] += 2 * weight * dz[l / W][l % W];
        }
    }
}

// Products: coordinate k meets the product of all others, from products running left and right (no division,
// so a factor of 0 is harmless).
template <class T, class F>
static void products_back(const View<T>& v, const Tile& tile, const T* G, T* lanes,
                          const ViewGradient& grad) {
    constexpr int P = kPanel<T>, W = kLanes<T>;
    const int64_t d = v.d;
    T *right = lanes, *scale = right + (d + 1) * W, *dz = scale + d * W;
    for (int64_t j = 0; j < tile.ld; j += W) {
        const T* z = v.panels + (tile.j0 + j) / P * P * d + (tile.j0 + j) % P;
        for (int64_t k = 0; k < 2 * d * W; ++k) scale[k] = 0;  // dz follows scale
        for (int64_t i = 0; i < tile.rows; ++i) {
            const T* x = v.x + (tile.i0 + i) * d;
            const Vec<T> g = load(G + i * tile.ld + j);
            Vec<T> product = splat<T>(1);
            store(right + d * W, product);
            for (int64_t k = d - 1; k >= 0; --k)
                store(right + k * W, product *= F::factor(splat(x[k]), load(z + k * P)));
            product = g;
            for (int64_t k = 0; k < d; ++k) {
                const Vec<T> xk = splat(x[k]), zk = load(z + k * P);
                const Vec<T> others = product * load(right + (k + 1) * W);
                const Slope<T> s = F::at(xk, zk);
                store(scale + k * W, load(scale + k * W) + others * s.scale);
                if (grad.x) {
                    store(dz + k * W, load(dz + k * W) + others * s.dz);
                    grad.x[(tile.i0 + i) * d + k] += hsum(others * s.dx);
                }
                product *= F::factor(xk, zk);
            }
        }
        for (int64_t k = 0; k < d; ++k) {
            grad.scale[k] += hsum(load(scale + k * W));
            if (grad.z)
                for (int64_t l = 0; l < least(W, tile.cols - j); ++l)
                    grad.z[(tile.j0 + j + l) * d + k] += dz[k * W + l];
        }
    }
}

// The diagonal: x with itself.  `kProduct` takes the other coordinates' product by a plain loop.
template <class T, class F, bool kProduct>
static void pairs_back(const View<T>& v, const Tile& tile, const T* G, const ViewGradient& grad) {
    for (int64_t j = 0; j < tile.cols; ++j) {
        const T* x = v.x + (tile.j0 + j) * v.d;
        for (int64_t k = 0; k < v.d; ++k) {
            const Slope<T> s = F::at(splat(x[k]), splat(x[k]));
            double g = G[j];
            if constexpr (kProduct)
                for (int64_t e = 0; e < v.d; ++e)
                    if (e != k) g *= F::factor(splat(x[e]), splat(x[e]))[0];
            grad.scale[k] += g * s.scale[0];
            if (!grad.x) continue;
            grad.x[(tile.j0 + j) * v.d + k] += g * s.dx[0];
            grad.z[(tile.j0 + j) * v.d + k] += g * s.dz[0];
        }
    }
}

// Sparse rows: sum_ij G x_k z_k through y = sum_j G_ij z_j; squared distances by expanding the square.
template <class T>
static void sparse_back(const View<T>& v, bool squares, const Tile& tile, const T* G, T* dense,
                        double* scale) {
    auto cross = [&](int64_t j, T g) {  // dense += g z_j
        for (int64_t b = v.sz.indptr[tile.j0 + j]; b < v.sz.indptr[tile.j0 + j + 1]; ++b)
            dense[v.sz.indices[b]] += g * v.sz.data[b];
    };
    if (tile.pairs) {
        for (int64_t j = 0; j < tile.cols && !squares; ++j)
            for (int64_t a = v.sx.indptr[tile.j0 + j]; a < v.sx.indptr[tile.j0 + j + 1]; ++a)
                scale[v.sx.indices[a]] += double(G[j]) * v.sx.data[a] * v.sx.data[a];
        return;
    }
    const double factor = squares ? -2.0 : 1.0;
    for (int64_t i = 0; i < tile.rows; ++i) {
        const T* g = G + i * tile.ld;
        double total = 0;
        for (int64_t j = 0; j < tile.cols; ++j) {
            cross(j, g[j]);
            total += g[j];
        }
        for (int64_t a = v.sx.indptr[tile.i0 + i]; a < v.sx.indptr[tile.i0 + i + 1]; ++a) {
            const double x = v.sx.data[a];
            scale[v.sx.indices[a]] += factor * x * dense[v.sx.indices[a]] + (squares ? total * x * x : 0.0);
        }
        for (int64_t j = 0; j < tile.cols; ++j)
            for (int64_t b = v.sz.indptr[tile.j0 + j]; b < v.sz.indptr[tile.j0 + j + 1]; ++b)
                dense[v.sz.indices[b]] = 0;
    }
    for (int64_t j = 0; j < tile.cols && squares; ++j) {
        double total = 0;
        for (int64_t i = 0; i < tile.rows; ++i) total += G[i * tile.ld + j];
        for (int64_t b = v.sz.indptr[tile.j0 + j]; b < v.sz.indptr[tile.j0 + j + 1]; ++b)
            scale[v.sz.indices[b]] += total * v.sz.data[b] * v.sz.data[b];
    }
}

// Adds what primitive `op` owes for the adjoint G (stride tile.ld).
template <class T>
static void primitive_back(const Call<T>& call, const Op& op, const Tile& tile, Work<T>& work, const T* G,
                           const Gradient& gradient) {
    const View<T>& v = call.views[op.a];
    const ViewGradient grad{gradient.views[op.a], gradient.views[op.a] + v.d,
                            gradient.x ? gradient.x[op.a] : nullptr, gradient.z ? gradient.z[op.a] : nullptr};
    if (v.sparse) return sparse_back(v, op.code == SQDIST, tile, G, work.dense, grad.scale);
#define MERCER_SUM(F) \
    (tile.pairs ? pairs_back<T, F<T>, false>(v, tile, G, grad) : sums_back<T, F<T>>(v, tile, G, grad))
#define MERCER_PRODUCT(F)                                     \
    (tile.pairs ? pairs_back<T, F<T>, true>(v, tile, G, grad) \
                : products_back<T, F<T>>(v, tile, G, work.lanes, grad))
    switch (op.code) {
        case SQDIST: return MERCER_SUM(DifferencesSlope);
        case DOT: return MERCER_SUM(DotSlope);
        case L1: return MERCER_SUM(AbsoluteSlope);
        case PERIODIC: return tile.pairs ? void() : periodic_back(v, call.columns[op.b], tile, G, grad);
        case COSPROD: return MERCER_PRODUCT(CosinesSlope);
        case ALLSUBSETS: return MERCER_PRODUCT(SubsetsSlope);
        case MINPROD: return MERCER_PRODUCT(SignedMinimumSlope);
        case MINSUM: return grad.x ? MERCER_SUM(MinimumSlope) : void();
        case CHI2: return grad.x ? MERCER_SUM(ChiSquareSlope) : void();
    }
#undef MERCER_SUM
#undef MERCER_PRODUCT
}

}  // namespace mercer::MERCER_ISA
