// What reads rows of features, compiled once per instruction set: MERCER_ISA names it.
#include <algorithm>
#include <utility>

#include "ascent_sweep.hpp"

namespace mercer {
namespace MERCER_ISA {
namespace {

// Sums are taken in this many parts, so that they can be taken side by side.
constexpr int64_t kParts = 8;

inline double total(const double (&part)[kParts]) {
    return ((part[0] + part[4]) + (part[1] + part[5])) + ((part[2] + part[6]) + (part[3] + part[7]));
}

template <class T> double product(const FeatureRows<T>& rows, int64_t r, const double* w) {
    double part[kParts] = {};
    if (rows.x) {
        const T* x = rows.x + r * rows.d;
        int64_t j = 0;
        for (; j + kParts <= rows.d; j += kParts)
            for (int64_t k = 0; k < kParts; ++k) part[k] += double(x[j + k]) * w[j + k];
        for (int64_t k = 0; j < rows.d; ++j, ++k) part[k] += double(x[j]) * w[j];
        return total(part);
    }
    // Rows of text are short: sums that stay in registers, and no array for what is left over.
    const T* x = rows.data;
    const int32_t* at = rows.indices;
    int64_t j = rows.indptr[r];
    const int64_t end = rows.indptr[r + 1];
    double a = 0, b = 0, c = 0, d = 0;
    for (; j + 4 <= end; j += 4) {
        a += double(x[j]) * w[at[j]];
        b += double(x[j + 1]) * w[at[j + 1]];
        c += double(x[j + 2]) * w[at[j + 2]];
        d += double(x[j + 3]) * w[at[j + 3]];
    }
    for (; j < end; ++j) a += double(x[j]) * w[at[j]];
    return (a + c) + (b + d);
}

template <class T> double length2(const FeatureRows<T>& rows, int64_t r) {
    const T* x = rows.x ? rows.x + r * rows.d : rows.data + rows.indptr[r];
    const int64_t size = rows.numbers(r);
    double part[kParts] = {};
    for (int64_t j = 0; j < size; ++j) part[j % kParts] += double(x[j]) * double(x[j]);
    return total(part);
}

template <class T> void add(const FeatureRows<T>& rows, int64_t r, double factor, double* w) {
    if (rows.x) {
        const T* x = rows.x + r * rows.d;
        for (int64_t j = 0; j < rows.d; ++j) w[j] += factor * double(x[j]);
        return;
    }
    for (int64_t j = rows.indptr[r], end = rows.indptr[r + 1]; j < end; ++j)
        w[rows.indices[j]] += factor * double(rows.data[j]);
}

// to += squares of the numbers of a row.
template <class T> void squares(const FeatureRows<T>& rows, int64_t r, double* to) {
    if (rows.x) {
        const T* x = rows.x + r * rows.d;
        for (int64_t j = 0; j < rows.d; ++j) to[j] += double(x[j]) * double(x[j]);
        return;
    }
    for (int64_t j = rows.indptr[r], end = rows.indptr[r + 1]; j < end; ++j)
        to[rows.indices[j]] += double(rows.data[j]) * double(rows.data[j]);
}

// H += factor * x x', lower half, for one row x; rows of H are `ld` apart.
template <class T> void outer(const FeatureRows<T>& rows, int64_t r, double factor, double* H, int64_t ld) {
    if (rows.x) {
        const T* x = rows.x + r * rows.d;
        for (int64_t a = 0; a < rows.d; ++a) {
            const double times = factor * double(x[a]);
            double* to = H + a * ld;
            for (int64_t j = 0; j <= a; ++j) to[j] += times * double(x[j]);
        }
        return;
    }
    const int64_t begin = rows.indptr[r], end = rows.indptr[r + 1];
    for (int64_t k = begin; k < end; ++k) {
        const double times = factor * double(rows.data[k]);
        double* to = H + int64_t(rows.indices[k]) * ld;
        for (int64_t j = begin; j <= k; ++j) to[rows.indices[j]] += times * double(rows.data[j]);
    }
}

// Calls for the lines of the cache at [from, to), the first few of them.
template <class A> inline void call_for(const A* from, const A* to) {
    constexpr int64_t kLines = 16;
    const A* end = std::min(to, from + kLines * int64_t(64 / sizeof(A)));
    for (; from < end; from += 64 / sizeof(A)) __builtin_prefetch(from);
}

// A row that is read soon.
template <class T> inline void prefetch(const FeatureRows<T>& rows, int64_t r) {
    if (rows.x) {
        __builtin_prefetch(rows.x + r * rows.d);
        return;
    }
    const int64_t j = rows.indptr[r], end = rows.indptr[r + 1];
    call_for(rows.data + j, rows.data + end);
    call_for(rows.indices + j, rows.indices + end);
}

template <class T> void sweep(Sweep<T>& s) {
    constexpr int64_t kAhead = 2;
    const FeatureRows<T>& rows = *s.rows;
    int64_t k = s.begin;
    while (k < s.end && s.most > 0) {
        const int64_t i = s.active[k];
        if (k + 2 * kAhead < s.end) __builtin_prefetch(s.variables + s.active[k + 2 * kAhead]);
        if (k + kAhead < s.end) prefetch(rows, s.variables[s.active[k + kAhead]].row);
        Variable& here = s.variables[i];
        const int64_t g = here.group;
        const double pull = -(product(rows, here.row, s.w) + here.linear) - (s.b[g] + s.c * s.excess[g]);
        s.numbers += rows.numbers(here.row);
        const double value = here.value;
        if ((value <= here.lo && pull < s.below) || (value >= here.hi && pull > s.above)) {
            std::swap(s.active[k], s.active[--s.end]);
            std::swap(s.active[s.end], s.active[--s.count]);
            continue;
        }
        ++k;
        if (value < here.hi) s.highest = std::max(s.highest, pull);
        if (value > here.lo) s.lowest = std::min(s.lowest, pull);
        double next = pull > 0 ? here.hi : here.lo;
        if (here.curve > 0) next = std::clamp(value + pull / here.curve, here.lo, here.hi);
        if (next == value || pull == 0) continue;
        here.value = next;
        s.excess[g] += next - value;
        add(rows, here.row, next - value, s.w);
        ++s.moves, --s.most;
    }
    s.begin = k;
}

template <class T>
constexpr AscentKernels<T> kernels{sweep<T>, product<T>, length2<T>, add<T>, squares<T>, outer<T>};

}  // namespace

extern const AscentIsa ascent_table;
const AscentIsa ascent_table{kernels<double>, kernels<float>};

}  // namespace MERCER_ISA
}  // namespace mercer
