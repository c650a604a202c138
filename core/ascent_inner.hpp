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
    int64_t j = rows.indptr[r];
    const int64_t end = rows.indptr[r + 1];
    for (; j + kParts <= end; j += kParts)
        for (int64_t k = 0; k < kParts; ++k) part[k] += double(rows.data[j + k]) * w[rows.indices[j + k]];
    for (int64_t k = 0; j < end; ++j, ++k) part[k] += double(rows.data[j]) * w[rows.indices[j]];
    return total(part);
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

// The start of a row that is read soon.
template <class T> inline void prefetch(const FeatureRows<T>& rows, int64_t r) {
    if (rows.x) {
        __builtin_prefetch(rows.x + r * rows.d);
        return;
    }
    const int64_t j = rows.indptr[r];
    __builtin_prefetch(rows.data + j);
    __builtin_prefetch(rows.data + j + 64 / sizeof(T));
    __builtin_prefetch(rows.indices + j);
}

template <class T> void sweep(Sweep<T>& s) {
    constexpr int64_t kAhead = 4;
    const FeatureRows<T>& rows = *s.rows;
    int64_t k = s.begin;
    while (k < s.end && s.most > 0) {
        const int64_t i = s.active[k];
        if (k + kAhead < s.end) prefetch(rows, s.row[s.active[k + kAhead]]);
        const int g = s.group[i];
        const double pull = -(product(rows, s.row[i], s.w) + s.linear[i]) - (s.b[g] + s.c * s.excess[g]);
        s.numbers += rows.numbers(s.row[i]);
        const double here = s.value[i];
        if ((here <= s.lo[i] && pull < s.below) || (here >= s.hi[i] && pull > s.above)) {
            std::swap(s.active[k], s.active[--s.end]);
            std::swap(s.active[s.end], s.active[--s.count]);
            continue;
        }
        ++k;
        if (here < s.hi[i]) s.highest = std::max(s.highest, pull);
        if (here > s.lo[i]) s.lowest = std::min(s.lowest, pull);
        double next = pull > 0 ? s.hi[i] : s.lo[i];
        if (s.curve[i] > 0) next = std::clamp(here + pull / s.curve[i], s.lo[i], s.hi[i]);
        if (next == here || pull == 0) continue;
        s.value[i] = next;
        s.excess[g] += next - here;
        add(rows, s.row[i], next - here, s.w);
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
