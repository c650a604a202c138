// The inner solver and the gradient update; included by each qp_*.cpp with MERCER_ISA and MERCER_BYTES set.
#pragma once
#include "qp_kernels.hpp"
#include "simd.hpp"

namespace mercer::MERCER_ISA {

constexpr double kInf = __builtin_inf();

// A register of R from memory in T.
template <class R> MERCER_INLINE Vec<R> widen(const R* p) { return load(p); }
template <class R> MERCER_INLINE V64 widen(const float* p) requires(sizeof(R) == 8) {
    typedef float U __attribute__((vector_size(MERCER_BYTES / 2), aligned(4), may_alias));
    return wide(*(const U*)p);
}
template <class R> MERCER_INLINE V32 widen(const double* p) requires(sizeof(R) == 4) {
    const H32 a = narrow(load(p)), b = narrow(load(p + kLanes<double>));
    V32 out;
    __builtin_memcpy(&out, &a, sizeof a);
    __builtin_memcpy((char*)&out + sizeof a, &b, sizeof b);
    return out;
}

struct Extremes {
    double most, least;  // largest v that may rise, smallest v that may fall
    int64_t at;          // where the largest is
};

// Two registers of positions: k0, k0 + 1, ...
template <class R> struct Positions {
    Mask<R> first, second;
    MERCER_MEMBER Positions(int64_t k0) {
        for (int l = 0; l < kLanes<R>; ++l) first[l] = k0 + l;
        second = first + kLanes<R>;
    }
    MERCER_MEMBER void advance() { first += 2 * kLanes<R>, second += 2 * kLanes<R>; }
};

// The largest value of each lane so far, and where: the first of equals.
template <class R> struct Best {
    Vec<R> value;
    Mask<R> where;
    // What is no number is passed by.  The next maximum waits for this one alone, not for a comparison too.
    MERCER_MEMBER void look_at(Vec<R> x, Mask<R> here) {
        const Vec<R> higher = vmax(x, value);
        where = higher != value ? here : where;
        value = higher;
    }
};
// Where `top` is, the largest value of both: the first of equals in a lane, in the first of such lanes.
template <class R> MERCER_INLINE int64_t place_of(Vec<R> top, const Best<R>& a, const Best<R>& b) {
    constexpr int W = kLanes<R>;
    const Mask<R> where[2] = {a.where, b.where};
    const int l = __builtin_ctz(lanes(a.value == top) | lanes(b.value == top) << W);
    return where[l / W][l % W];
}

// v -= a A + b B over [k0, k1), and the extremes of what results.
//   cost  10 reads and 2 writes for two registers.  Bits of kQpNever take out what may not move: sums,
//         comparisons and maxima share two of the units that compute, bits have others, too
template <class T, class R>
MERCER_INLINE Extremes move_and_look(R* v, const R* rise, const R* fall, const T* A, R a, const T* B, R b,
                                     int64_t k0, int64_t k1) {
    constexpr int W = kLanes<R>;
    using V = Vec<R>;
    Best<R> best0{V{} - R(kInf), {}}, best1 = best0;
    V low0 = V{} + R(kInf), low1 = low0;
    Positions<R> here(k0);
    for (int64_t k = k0; k < k1; k += 2 * W) {
        const V x0 = (load(v + k) - a * widen<R>(A + k)) - b * widen<R>(B + k);
        const V x1 = (load(v + k + W) - a * widen<R>(A + k + W)) - b * widen<R>(B + k + W);
        store(v + k, x0);
        store(v + k + W, x1);
        low0 = vmin(either(x0, load(fall + k)), low0);
        low1 = vmin(either(x1, load(fall + k + W)), low1);
        best0.look_at(either(x0, load(rise + k)), here.first);
        best1.look_at(either(x1, load(rise + k + W)), here.second);
        here.advance();
    }
    const V most = highest<R>(vmax(best0.value, best1.value)), least = lowest<R>(vmin(low0, low1));
    return {double(most[0]), double(least[0]), most[0] > R(-kInf) ? place_of<R>(most, best0, best1) : -1};
}

struct Choice {
    double gain;
    int64_t at;
};

// The partner j of i with the largest gain b^2 / a, where b = v_i - v_j > 0 and a is the curvature
// along e_i - e_j.
template <class T, class R>
MERCER_INLINE Choice partner(const R* v, const R* fall, const R* diag, const T* Ki, R vi, R kii,
                             R least_curve, int64_t k0, int64_t k1) {
    constexpr int W = kLanes<R>;
    using V = Vec<R>;
    Best<R> best0{}, best1{};
    Positions<R> here(k0);
    const V tau = V{} + least_curve;
    const auto gain = [&](int64_t k) {
        const V b = vmax(vi - either(load(v + k), load(fall + k)), V{});
        const V a = vmax((kii + load(diag + k)) - R(2) * widen<R>(Ki + k), tau);
        return b * b / a;
    };
    for (int64_t k = k0; k < k1; k += 2 * W) {
        best0.look_at(gain(k), here.first);
        best1.look_at(gain(k + W), here.second);
        here.advance();
    }
    const V most = highest<R>(vmax(best0.value, best1.value));
    if (!(most[0] > 0)) return {0, -1};
    return {double(most[0]), place_of<R>(most, best0, best1)};
}

// Without a constraint one variable moves: the one with the largest gain v^2 / K_kk.
template <class R>
MERCER_INLINE Choice single(const R* v, const R* rise, const R* fall, const R* diag, double tau, int64_t q) {
    Choice c{0, -1};
    for (int64_t k = 0; k < q; ++k) {
        const bool free = v[k] > 0 ? rise[k] == 0 : fall[k] == 0;
        const double a = diag[k] > tau ? diag[k] : tau, gain = free ? double(v[k]) * v[k] / a : 0;
        if (gain > c.gain) c = {gain, k};
    }
    return c;
}

template <class T, class R> MERCER_INLINE const T* row(Inner<T, R>& p, int64_t k) {
    if (!p.K[k]) p.K[k] = p.fetch_row(p.source, k);
    return p.K[k];
}

// Moves variable k by t, exactly onto a bound if it reaches one, and says how far it went.
template <class T, class R> MERCER_INLINE double shift(Inner<T, R>& p, int64_t k, double t) {
    const double before = p.value[k];
    double after = before + t;
    if (after >= p.hi[k]) after = p.hi[k];
    if (after <= p.lo[k]) after = p.lo[k];
    p.value[k] = after;
    p.rise[k] = after < p.hi[k] ? R(0) : R(kQpNever);
    p.fall[k] = after > p.lo[k] ? R(0) : R(kQpNever);
    return after - before;
}

// Sequential minimal optimisation, second-order choice of the pair (Fan, Chen and Lin 2005).
//   cost    two passes over q entries a step, all in cache
//   order   fixed: depends on the data alone
template <class T, class R> static void inner(Inner<T, R>& p) {
    const int64_t ends[3] = {0, p.split, p.q};
    const int groups = p.equality == 2 && p.split < p.q ? 2 : 1;
    const T *A = p.K[0], *B = p.K[0];
    double a = 0, b = 0;
    p.steps = 0, p.decrease = 0, p.unbounded = p.stuck = false;
    for (;; ++p.steps) {
        Extremes e[2];
        p.violation = -kInf;
        for (int g = 0; g < groups; ++g) {
            e[g] = move_and_look(p.v, p.rise, p.fall, A, R(a), B, R(b), ends[g],
                                 groups == 1 ? p.q : ends[g + 1]);
            double gap = e[g].most - e[g].least;
            if (p.equality == 0) gap = e[g].most > -e[g].least ? e[g].most : -e[g].least;
            if (gap > p.violation) p.violation = gap;
        }
        if (!(p.violation > p.target) || p.steps >= p.most) return;
        if (p.equality == 0) {
            const int64_t i = single(p.v, p.rise, p.fall, p.diag, p.tau, p.q).at;
            if (i < 0) return;
            const double h = p.diag[i] > p.tau ? p.diag[i] : p.tau, w = p.v[i];
            const double moved = shift(p, i, w / h);
            if (!(moved - moved == 0) || (p.diag[i] <= p.tau && p.hi[i] == kInf && w > 0)) p.unbounded = true;
            if (moved == 0 || p.unbounded) return void(p.stuck = true);
            p.decrease += moved * (w - 0.5 * p.diag[i] * moved);
            A = B = row(p, i), a = moved, b = 0;
            continue;
        }
        int64_t i = -1, j = -1;
        double gain = 0;
        for (int g = 0; g < groups; ++g) {
            if (e[g].at < 0) continue;
            const int64_t k = e[g].at;
            const Choice c = partner(p.v, p.fall, p.diag, row(p, k), p.v[k], p.diag[k], R(p.tau), ends[g],
                                     groups == 1 ? p.q : ends[g + 1]);
            if (c.gain > gain) gain = c.gain, i = k, j = c.at;
        }
        if (i < 0 || j < 0) return void(p.stuck = true);
        const double slope = double(p.v[i]) - p.v[j];
        const double curve = double(p.diag[i]) + p.diag[j] - 2.0 * double(p.K[i][j]);
        double t = slope / (curve > p.tau ? curve : p.tau);
        const double up = p.hi[i] - p.value[i], down = p.value[j] - p.lo[j];
        if (t > up) t = up;
        if (t > down) t = down;
        if (curve <= p.tau && up == kInf && down == kInf) return void(p.unbounded = p.stuck = true);
        const double rose = shift(p, i, t), fell = shift(p, j, -t);
        if (rose == 0 && fell == 0) return void(p.stuck = true);
        p.decrease += t * (slope - 0.5 * curve * t);
        A = row(p, i), a = rose, B = row(p, j), b = fell;
    }
}

// Four rows share one pass over f, a line of the cache at a time; a block of f stays in the nearest cache.
// The rows come from memory in stretches too short for the processor to see what comes next: it is told, by
// the same stretch of the next four.
template <class T>
static void accumulate(const T* const* rows, const double* d, int64_t count, int64_t j0, int64_t j1,
                       double* f) {
    constexpr int64_t W = kLanes<double>, kLine = 64 / int64_t(sizeof(T)), kBlock = 512;
    for (int64_t c0 = j0; c0 < j1; c0 += kBlock) {
        const int64_t c1 = least(c0 + kBlock, j1);
        int64_t w = 0;
        for (; w + 4 <= count; w += 4) {
            const T *r0 = rows[w], *r1 = rows[w + 1], *r2 = rows[w + 2], *r3 = rows[w + 3];
            const T* const* next = w + 8 <= count ? rows + w + 4 : rows + w;
            const T *n0 = next[0], *n1 = next[1], *n2 = next[2], *n3 = next[3];
            const double d0 = d[w], d1 = d[w + 1], d2 = d[w + 2], d3 = d[w + 3];
            int64_t j = c0;
            for (; j + kLine <= c1; j += kLine) {
                __builtin_prefetch(n0 + j);
                __builtin_prefetch(n1 + j);
                __builtin_prefetch(n2 + j);
                __builtin_prefetch(n3 + j);
                for (int64_t l = j; l < j + kLine; l += W)
                    store(f + l, load(f + l) + (d0 * widen<double>(r0 + l) + d1 * widen<double>(r1 + l)) +
                                     (d2 * widen<double>(r2 + l) + d3 * widen<double>(r3 + l)));
            }
            for (; j < c1; ++j) f[j] = f[j] + (d0 * r0[j] + d1 * r1[j]) + (d2 * r2[j] + d3 * r3[j]);
        }
        for (; w < count; ++w)
            for (int64_t j = c0; j < c1; ++j) f[j] += d[w] * rows[w][j];
    }
}

// Exchange row k, from column `first` on, for the row below with the largest entry in column k; false where
// all of them are 0, or one is no number.
static bool bring_pivot(double* M, double* x, int64_t size, int64_t k, int64_t first) {
    int64_t pivot = k;
    for (int64_t i = k + 1; i < size; ++i)
        if (__builtin_fabs(M[i * size + k]) > __builtin_fabs(M[pivot * size + k])) pivot = i;
    if (pivot != k) {
        for (int64_t j = first; j < size; ++j) {
            const double kept = M[k * size + j];
            M[k * size + j] = M[pivot * size + j];
            M[pivot * size + j] = kept;
        }
        const double kept = x[k];
        x[k] = x[pivot];
        x[pivot] = kept;
    }
    return __builtin_fabs(M[k * size + k]) > 0;
}

// a[j] -= sum_w c[w] b[w][j] over j0 <= j < j1 for up to four rows b.
template <int R>
MERCER_INLINE void take_away(double* a, const double* const* b, const double* c, int64_t j0, int64_t j1) {
    constexpr int W = kLanes<double>;
    int64_t j = j0;
    for (; j + W <= j1; j += W) {
        auto v = load(a + j);
        for (int w = 0; w < R; ++w) v -= c[w] * load(b[w] + j);
        store(a + j, v);
    }
    for (; j < j1; ++j)
        for (int w = 0; w < R; ++w) a[j] -= c[w] * b[w][j];
}

// R pivots from k on: first their columns, then what is right of them, in one pass over each row below.
template <int R> static bool eliminate(double* M, double* x, int64_t size, int64_t k) {
    const double* pivots[R];
    for (int w = 0; w < R; ++w) {
        const int64_t here = k + w;
        if (!bring_pivot(M, x, size, here, k)) return false;
        const double* row = M + here * size;
        pivots[w] = row;
        const double inverse = 1 / row[here];
        for (int64_t i = here + 1; i < size; ++i) {
            double* below = M + i * size;
            const double c = below[here] * inverse;
            below[here] = c;
            for (int64_t j = here + 1; j < k + R; ++j) below[j] -= c * row[j];
            x[i] -= c * x[here];
        }
    }
    for (int w = 1; w < R; ++w) {
        double* row = M + (k + w) * size;
        for (int v = 0; v < w; ++v) take_away<1>(row, pivots + v, row + k + v, k + R, size);
    }
    for (int64_t i = k + R; i < size; ++i) take_away<R>(M + i * size, pivots, M + i * size + k, k + R, size);
    return true;
}

// Four pivots at a time; then x is found from the last entry on.
static bool solve_system(double* M, double* x, int64_t size) {
    int64_t k = 0;
    for (; k + 4 <= size; k += 4)
        if (!eliminate<4>(M, x, size, k)) return false;
    for (; k < size; ++k)
        if (!eliminate<1>(M, x, size, k)) return false;
    for (k = size - 1; k >= 0; --k) {
        double sum = x[k];
        for (int64_t j = k + 1; j < size; ++j) sum -= M[k * size + j] * x[j];
        x[k] = sum / M[k * size + k];
    }
    return true;
}

extern const QpIsa qp_table;
const QpIsa qp_table = {{inner<double, double>, inner<double, float>, accumulate<double>},
                        {inner<float, double>, inner<float, float>, accumulate<float>},
                        solve_system};

}  // namespace mercer::MERCER_ISA
