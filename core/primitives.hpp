// Primitives on tiles: one blocked loop over packed panels, specialised by what a coordinate contributes.
//
// z lies in panels of P columns, [column / P][k][column % P], so that one broadcast of x_ik meets two
// registers of z.  The same loop is the matrix product (DOT), the direct squared distance, L1, ...
#pragma once
#include "tile.hpp"
#include "vecmath.hpp"

namespace mercer::MERCER_ISA {

// Coordinates per block: a panel of z (16 KiB) stays in the first-level cache.
constexpr int64_t kDepth = 256;
// Rows per block: a multiple of every R; they stay in the second-level cache for all panels.
constexpr int64_t kHeight = 96;

// ---- what one coordinate contributes -----------------------------------------------------------------
// start: value over no coordinates; step: acc with coordinate (x, z) of weight w; join: two blocks into one.
// R: rows held in registers at once (2 R accumulators + temporaries must fit the register file).

template <class T> struct Sum {
    static Vec<T> start() { return Vec<T>{}; }
    static MERCER_MEMBER Vec<T> join(Vec<T> a, Vec<T> b) { return a + b; }
};
template <class T> struct Product {
    static Vec<T> start() { return splat<T>(1); }
    static MERCER_MEMBER Vec<T> join(Vec<T> a, Vec<T> b) { return a * b; }
};
template <class T> struct Dot : Sum<T> {
    static constexpr int R = kBytes == 64 ? 12 : 6;
    static MERCER_MEMBER Vec<T> step(Vec<T> acc, Vec<T> x, Vec<T> z) { return acc + x * z; }
};
template <class T> struct Differences : Sum<T> {
    static constexpr int R = kBytes == 64 ? 12 : 4;
    static MERCER_MEMBER Vec<T> step(Vec<T> acc, Vec<T> x, Vec<T> z) {
        Vec<T> t = x - z;
        return acc + t * t;
    }
};
template <class T> struct Absolute : Sum<T> {
    static constexpr int R = 4;
    static MERCER_MEMBER Vec<T> step(Vec<T> acc, Vec<T> x, Vec<T> z) { return acc + vabs(x - z); }
};
template <class T> struct Cosines : Product<T> {
    static constexpr int R = 1;
    static MERCER_MEMBER Vec<T> step(Vec<T> acc, Vec<T> x, Vec<T> z) { return acc * vcos(x - z); }
};
template <class T> struct Subsets : Product<T> {
    static constexpr int R = 4;
    static MERCER_MEMBER Vec<T> step(Vec<T> acc, Vec<T> x, Vec<T> z) { return acc * (x * z + T(1)); }
};
template <class V> MERCER_INLINE V keep_nan(V value, V x, V z) {  // comparisons drop NaN; put it back
    value = x == x ? value : x;
    return z == z ? value : z;
}
template <class T> struct Minimum : Sum<T> {
    static constexpr int R = 4;
    static MERCER_MEMBER Vec<T> step(Vec<T> acc, Vec<T> x, Vec<T> z) {
        Vec<T> least = x < z ? x : z;
        return acc + (x == x ? least : x);  // z NaN: x < z is false, so z was taken
    }
};
template <class T> struct SignedMinimum : Product<T> {
    static constexpr int R = 2;
    static MERCER_MEMBER Vec<T> step(Vec<T> acc, Vec<T> x, Vec<T> z) {
        Vec<T> t = x * z > T(0) ? vmin(vabs(x), vabs(z)) : Vec<T>{};
        return acc * keep_nan(t, x, z);
    }
};
template <class T> struct ChiSquare : Sum<T> {
    static constexpr int R = 2;
    static MERCER_MEMBER Vec<T> step(Vec<T> acc, Vec<T> x, Vec<T> z) {
        Vec<T> t = x - z, q = t * t / (x + z);
        Mask<T> empty = (t == T(0)) & (x + z == T(0));
        return acc + (empty ? Vec<T>{} : q);
    }
};

// ---- the loop ----------------------------------------------------------------------------------------

// R rows of x against one panel, coordinates k0 .. k1; joined to `out` unless this is the first block.
// kGrouped: the R values of a coordinate lie side by side (rs = 1, cs = R).
template <class T, class F, int R, bool kGrouped = false>
MERCER_INLINE void block(const T* x, int64_t rs, int64_t cs, const T* z, int64_t k0, int64_t k1, bool first,
                         T* out, int64_t ld) {
    constexpr int P = kPanel<T>, W = kLanes<T>;
    Vec<T> acc[R][2];
    for (int r = 0; r < R; ++r) acc[r][0] = acc[r][1] = F::start();
    for (int64_t k = k0; k < k1; ++k) {
        Vec<T> z0 = load(z + k * P), z1 = load(z + k * P + W);
#pragma GCC unroll 12
        for (int r = 0; r < R; ++r) {
            Vec<T> xi = splat(kGrouped ? x[k * R + r] : x[r * rs + k * cs]);
            acc[r][0] = F::step(acc[r][0], xi, z0);
            acc[r][1] = F::step(acc[r][1], xi, z1);
        }
    }
    for (int r = 0; r < R; ++r)
        for (int h = 0; h < 2; ++h) {
            T* at = out + r * ld + h * W;
            store(at, first ? acc[r][h] : F::join(load(at), acc[r][h]));
        }
}

// out[i][j] = F over k of (x[i*rs + k*cs], z_j[k]) for `rows` rows and `npanels` panels.
//   group   the same rows R by R (see `regroup`), or null
//   cost    rows * npanels * P * d steps
//   order   coordinates left to right in blocks of kDepth, whatever the tile: a pair's value does not
//           depend on where its tile lies
template <class T, class F>
static void sweep(const T* x, int64_t rs, int64_t cs, int64_t rows, int64_t d, const T* panels,
                  int64_t panel_stride, int64_t npanels, const T* group, bool accumulate, T* out,
                  int64_t ld) {
    constexpr int P = kPanel<T>, R = F::R;
    int64_t k0 = 0;
    do {
        int64_t k1 = least(k0 + kDepth, d);
        bool first = k0 == 0 && !accumulate;
        for (int64_t i0 = 0; i0 < rows; i0 += kHeight)
            for (int64_t q = 0; q < npanels; ++q) {
                const T* z = panels + q * panel_stride;
                const int64_t i1 = least(i0 + kHeight, rows);
                int64_t i = i0;
                for (; i + R <= i1; i += R) {
                    T* to = out + i * ld + q * P;
                    if (group) block<T, F, R, true>(group + i * d, 1, R, z, k0, k1, first, to, ld);
                    else block<T, F, R>(x + i * rs, rs, cs, z, k0, k1, first, to, ld);
                }
                for (; i < i1; ++i)
                    block<T, F, 1>(x + i * rs, rs, cs, z, k0, k1, first, out + i * ld + q * P, ld);
            }
        k0 = k1;
    } while (k0 < d);
}

// Rows i0 .. of a view R by R, the R values of a coordinate side by side: what the matrix
// product reads fastest.
template <class T, class F> static const T* regroup(const View<T>& v, const Tile& tile, Work<T>& work) {
    constexpr int R = F::R;
    if (work.grouped_view == &v && work.grouped_row == tile.i0) return work.group;
    for (int64_t i = 0; i + R <= tile.rows; i += R)
        for (int r = 0; r < R; ++r) {
            const T* from = v.x + (tile.i0 + i + r) * v.d;
            for (int64_t k = 0; k < v.d; ++k) work.group[i * v.d + k * R + r] = from[k];
        }
    work.grouped_view = &v;
    work.grouped_row = tile.i0;
    return work.group;
}

template <class T> static void pack(const T* a, int64_t rows, int64_t cols, int64_t rs, int64_t cs, T* out) {
    constexpr int P = kPanel<T>;
    for (int64_t q = 0; q < rows; q += P)
        for (int64_t k0 = 0; k0 < cols; k0 += 8)  // a few coordinates at a time: both sides stay in cache
            for (int64_t l = 0; l < P; ++l) {
                const T* from = a + least(q + l, rows - 1) * rs;
                for (int64_t k = k0; k < least(k0 + 8, cols); ++k) out[q * cols + k * P + l] = from[k * cs];
            }
}

// ---- squared distances ---------------------------------------------------------------------------------

// |x - z|^2 of one pair by differences.  Symmetric to the last bit; 0 for x = z; NaN and inf as IEEE says.
template <class T> static T pair_sqdist(const T* x, const T* z, int64_t d) {
    constexpr int W = kLanes<T>;
    Vec<T> a{}, b{};
    int64_t k = 0;
    for (; k + 2 * W <= d; k += 2 * W) {
        Vec<T> s = load(x + k) - load(z + k), t = load(x + k + W) - load(z + k + W);
        a += s * s;
        b += t * t;
    }
    T total = T(hsum(a + b));
    for (; k < d; ++k) total += (x[k] - z[k]) * (x[k] - z[k]);
    return total;
}
template <class T> static T pair_sqdist(const Csr<T>& x, int64_t i, const Csr<T>& z, int64_t j) {
    int64_t a = x.indptr[i], a1 = x.indptr[i + 1], b = z.indptr[j], b1 = z.indptr[j + 1];
    T total = 0;
    while (a < a1 || b < b1) {
        bool left = a < a1 && (b == b1 || x.indices[a] <= z.indices[b]);
        bool right = b < b1 && (a == a1 || z.indices[b] <= x.indices[a]);
        T t = (left ? x.data[a] : T(0)) - (right ? z.data[b] : T(0));
        total += t * t;
        a += left;
        b += right;
    }
    return total;
}

// Below this fraction of |x|^2 + |z|^2 the expansion may lose more than 1e-10 (float32: 1e-5) of the
// distance.  float64 takes the worst case, 2 (d + 4) u; float32 the typical one, as the worst case would
// repair every pair.
template <class T> MERCER_INLINE T repair_below(int64_t d) {
    if (sizeof(T) == 8) return T(2.0 * double(d + 4) * 0x1p-53 / 1e-10);
    return T(2.0 * sqrt(double(least(d, kDepth) + 4)) * 0x1p-24 / 1e-5);
}

// Rows r0 .. r0+rows of a tile: t = x.z becomes |x|^2 + |z|^2 - 2 t; pairs that cancel are
// recomputed by differences.
//   cost    one pass, then d per repaired pair; rows with many such pairs are redone by differences at once
template <class T> static void expand(const View<T>& v, const Tile& tile, int64_t r0, int64_t rows, T* out) {
    constexpr int W = kLanes<T>;
    const T fraction = repair_below<T>(v.terms);
    Mask<T> count{};
    for (int64_t i = r0; i < r0 + rows; ++i) {
        T* s = out + i * tile.ld;
        const T xx = v.xx[tile.i0 + i];
        for (int64_t j = 0; j < tile.ld; j += W) {
            Vec<T> norms = xx + load(v.zz + tile.j0 + j);
            Vec<T> value = norms - T(2) * load(s + j);
            count -= ~(value > fraction * norms);  // NaN counts as cancelled
            store(s + j, value);
        }
    }
    double cancelled = hsum(count);
    if (cancelled == 0) return;
    if (!v.sparse && cancelled > 0.125 * double(rows * tile.ld)) {
        sweep<T, Differences<T>>(v.x + (tile.i0 + r0) * v.d, v.d, 1, rows, v.d, v.panels + tile.j0 * v.d,
                                 kPanel<T> * v.d, tile.ld / kPanel<T>, nullptr, false, out + r0 * tile.ld,
                                 tile.ld);
        return;
    }
    for (int64_t i = r0; i < r0 + rows; ++i) {
        T* s = out + i * tile.ld;
        const T xx = v.xx[tile.i0 + i];
        for (int64_t j0 = 0; j0 < tile.ld; j0 += W) {
            const Mask<T> bad = ~(load(s + j0) > fraction * (xx + load(v.zz + tile.j0 + j0)));
            if (__builtin_expect(!any(bad), 1)) continue;
            for (int64_t j = j0; j < j0 + W; ++j) {
                if (!bad[j - j0]) continue;
                // Padding too: what repeats the last column must not be a negative
                // distance, whose root is NaN.
                const int64_t column = tile.j0 + least(j, tile.cols - 1);
                s[j] = v.sparse ? pair_sqdist(v.sx, tile.i0 + i, v.sz, column)
                                : pair_sqdist(v.x + (tile.i0 + i) * v.d, v.z + column * v.d, v.d);
            }
        }
    }
}

// x_i . z_j for sparse x_i and panels of z: every stored entry of x_i meets two panels at once.
//   cost    (nonzeros of the tile's x rows) * cols multiply-adds, at nearly the rate of the dense product
template <class T> static void sparse_sweep(const View<T>& v, const Tile& tile, T* out) {
    constexpr int W = kLanes<T>, P = kPanel<T>;
    static_assert(P == 2 * W);
    for (int64_t j = 0; j < tile.ld; j += 2 * P) {
        const bool two = j + P < tile.ld;
        const T *a = v.panels + (tile.j0 + j) * v.d, *b = two ? a + P * v.d : a;
        for (int64_t i = 0; i < tile.rows; ++i) {
            Vec<T> a0{}, a1{}, b0{}, b1{};
            for (int64_t k = v.sx.indptr[tile.i0 + i]; k < v.sx.indptr[tile.i0 + i + 1]; ++k) {
                const Vec<T> x = splat(v.sx.data[k]);
                const int64_t at = v.sx.indices[k] * P;
                a0 += x * load(a + at);
                a1 += x * load(a + at + W);
                b0 += x * load(b + at);
                b1 += x * load(b + at + W);
            }
            T* to = out + i * tile.ld + j;
            store(to, a0);
            store(to + W, a1);
            if (two) store(to + P, b0), store(to + P + W, b1);
        }
    }
}

// x_i . z_j for sparse rows without panels: every stored entry of x_i looks up who else has that coordinate.
//   cost    a look-up for each stored entry of the tile's x rows, a multiply-add for each
//           that both rows store
template <class T> static void sparse_match(const View<T>& v, const Tile& tile, T* out) {
    const SparseBlock<T>& z = v.blocks[tile.j0 / v.block];
    for (int64_t i = 0; i < tile.rows; ++i) {
        T* row = out + i * tile.ld;
        for (int64_t j = 0; j < tile.ld; ++j) row[j] = 0;
        for (int64_t a = v.sx.indptr[tile.i0 + i]; a < v.sx.indptr[tile.i0 + i + 1]; ++a) {
            const int64_t k = v.sx.indices[a];
            int64_t h = int64_t((uint64_t(k) * kSparseHash) >> z.shift);
            while (z.places[h].coordinate != k && z.places[h].coordinate >= 0) h = (h + 1) & z.mask;
            const SparsePlace p = z.places[h];  // empty where no row stores k
            const T x = v.sx.data[a];
            if (p.last - p.first == z.full)
                for (int32_t j = 0; j < z.full; j += kLanes<T>)
                    store(row + j, load(row + j) + x * load(z.value + p.first + j));
            else
                for (int32_t e = p.first; e < p.last; ++e) row[z.column[e]] += x * z.value[e];
        }
        for (int64_t j = tile.cols; j < tile.ld; ++j) row[j] = row[tile.cols - 1];
    }
}

// ---- one primitive on one tile -----------------------------------------------------------------------

template <class T, class F>
static void on_tile(const View<T>& v, const Tile& tile, T* out, const T* group = nullptr) {
    if (!tile.pairs) {
        sweep<T, F>(v.x + tile.i0 * v.d, v.d, 1, tile.rows, v.d, v.panels + tile.j0 * v.d, kPanel<T> * v.d,
                    tile.ld / kPanel<T>, group, false, out, tile.ld);
        return;
    }
    for (int64_t j = 0; j < tile.ld; ++j) {  // the diagonal: x with itself
        const T* x = v.x + (tile.j0 + least(j, tile.cols - 1)) * v.d;
        Vec<T> total = F::start();
        for (int64_t k0 = 0; k0 < v.d; k0 += kDepth) {
            Vec<T> acc = F::start();
            for (int64_t k = k0; k < least(k0 + kDepth, v.d); ++k)
                acc = F::step(acc, splat(x[k]), splat(x[k]));
            total = k0 ? F::join(total, acc) : acc;
        }
        out[j] = total[0];
    }
}

template <class T> static void sparse_pairs(const View<T>& v, bool squares, const Tile& tile, T* out) {
    for (int64_t j = 0; j < tile.ld; ++j) {
        const int64_t row = tile.j0 + least(j, tile.cols - 1);
        T total = 0;
        for (int64_t a = v.sx.indptr[row]; a < v.sx.indptr[row + 1]; ++a) {
            T t = squares ? v.sx.data[a] : v.sx.data[a] - v.sx.data[a];
            total += t * t;
        }
        out[j] = total;
    }
}

// sin(x - z) from the sines and cosines of both.  Each product is rounded on its own, so that it is exactly 0
// for x = z and changes sign exactly with the order; its error is at most 2 ulp of 1.
template <class V> MERCER_INLINE V sine_between(V sx, V cx, V sz, V cz) {
    return rounded(sx * cz) - rounded(cx * sz);
}

// Sum_k w_k sin(x_k - z_k)^2: no sine is taken per pair.
template <class T> static void periodic(const View<T>& v, const double* w, const Tile& tile, T* out) {
    constexpr int P = kPanel<T>, W = kLanes<T>, R = 2;
    const int64_t d = v.d;
    if (tile.pairs) {  // 0, or NaN where x is not finite
        for (int64_t j = 0; j < tile.ld; ++j) {
            const T* x = v.x + (tile.j0 + least(j, tile.cols - 1)) * d;
            out[j] = 0;
            for (int64_t k = 0; k < d; ++k) out[j] += x[k] - x[k];
        }
        return;
    }
    for (int64_t q = 0; q * P < tile.ld; ++q) {
        const T* z = v.phase_panels + (tile.j0 + q * P) * 2 * d;
        for (int64_t i = 0; i < tile.rows; i += R) {
            const T* x[R];
            Vec<T> acc[R][2] = {};
            for (int r = 0; r < R; ++r) x[r] = v.phases + (tile.i0 + least(i + r, tile.rows - 1)) * 2 * d;
            for (int64_t k = 0; k < d; ++k) {
                const T* zk = z + 2 * k * P;
                const Vec<T> s0 = load(zk), s1 = load(zk + W), c0 = load(zk + P), c1 = load(zk + P + W);
                const T weight = T(w[k]);
#pragma GCC unroll 2
                for (int r = 0; r < R; ++r) {
                    const Vec<T> sx = splat(x[r][2 * k]), cx = splat(x[r][2 * k + 1]);
                    const Vec<T> a = sine_between(sx, cx, s0, c0), b = sine_between(sx, cx, s1, c1);
                    acc[r][0] += weight * a * a;
                    acc[r][1] += weight * b * b;
                }
            }
            for (int r = 0; r < R && i + r < tile.rows; ++r)
                for (int h = 0; h < 2; ++h) store(out + (i + r) * tile.ld + q * P + h * W, acc[r][h]);
        }
    }
}

// Whether `primitive` leaves x.z where the squared distance belongs, for `expand` to finish.
template <class T> MERCER_INLINE bool expands(const View<T>& v, const Op& op, const Tile& tile) {
    return op.code == SQDIST && v.expand && !tile.pairs;
}

// out = the primitive `op` over the tile (stride tile.ld), but for what `expand` has to finish.
template <class T>
static void primitive(const Call<T>& call, const Op& op, const Tile& tile, Work<T>& work, T* out) {
    const View<T>& v = call.views[op.a];
    if (v.sparse) {
        if (tile.pairs) return sparse_pairs(v, op.code == DOT, tile, out);
        return v.panels ? sparse_sweep(v, tile, out) : sparse_match(v, tile, out);
    }
    auto product = [&] {
        const bool grouped = v.grouped && !tile.pairs;
        on_tile<T, Dot<T>>(v, tile, out, grouped ? regroup<T, Dot<T>>(v, tile, work) : nullptr);
    };
    switch (op.code) {
        case SQDIST:
            if (!expands(v, op, tile)) return on_tile<T, Differences<T>>(v, tile, out);
            return product();
        case DOT: return product();
        case L1: return on_tile<T, Absolute<T>>(v, tile, out);
        case PERIODIC: return periodic(v, call.columns[op.b], tile, out);
        case COSPROD: return on_tile<T, Cosines<T>>(v, tile, out);
        case ALLSUBSETS: return on_tile<T, Subsets<T>>(v, tile, out);
        case MINSUM: return on_tile<T, Minimum<T>>(v, tile, out);
        case MINPROD: return on_tile<T, SignedMinimum<T>>(v, tile, out);
        case CHI2: return on_tile<T, ChiSquare<T>>(v, tile, out);
    }
}

}  // namespace mercer::MERCER_ISA
