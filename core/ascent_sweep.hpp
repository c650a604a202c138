// The sweep of coordinate ascent over the variables at work, compiled once per instruction set
// (see ascent.hpp for the problem).
#pragma once
#include <cstdint>

namespace mercer {

// n rows of d features: dense where x is there, else compressed (data, indices, indptr).
template <class T> struct FeatureRows {
    int64_t n = 0, d = 0;
    const T* x = nullptr;
    const T* data = nullptr;
    const int32_t* indices = nullptr;
    const int64_t* indptr = nullptr;

    int64_t numbers(int64_t r) const { return x ? d : indptr[r + 1] - indptr[r]; }
};

// What a visit needs of a variable, on one line of the cache.
struct alignas(64) Variable {
    double value, lo, hi, linear, curve;
    int64_t row;
    int64_t group;
};

// Some of the variables, visited in order; each is moved to its optimum, all others being fixed.
//   pull of variable i   = -(F[r_i] w + linear_i) - (b + c excess) of its group
//   new value            = value + pull / curve, within its bounds
template <class T> struct Sweep {
    const FeatureRows<T>* rows;
    Variable* variables;
    double* w;
    const double* b;
    double* excess;  // sum of the values of each group, less what it must be
    double c;
    // variables at work: those at [0, count); what rests is exchanged with the last and leaves
    int64_t* active;
    int64_t count;
    // A variable at its lower (upper) bound whose pull is below (above) these rests.
    double below, above;
    int64_t begin, end;  // places in `active` to visit now; end falls with what rests
    int64_t most;        // moves allowed
    // results, added to what is there
    double highest, lowest;  // pulls that a variable could follow
    int64_t moves, numbers;
};

template <class T> struct AscentKernels {
    void (*sweep)(Sweep<T>& s);
    double (*product)(const FeatureRows<T>& rows, int64_t r, const double* w);
    double (*length2)(const FeatureRows<T>& rows, int64_t r);
    void (*add)(const FeatureRows<T>& rows, int64_t r, double factor, double* w);
    void (*squares)(const FeatureRows<T>& rows, int64_t r, double* to);  // added to what is there
    // H += factor x x' for a row x, lower half; columns of sparse rows increase.
    void (*outer)(const FeatureRows<T>& rows, int64_t r, double factor, double* H, int64_t ld);
};
struct AscentIsa {
    AscentKernels<double> f64;
    AscentKernels<float> f32;
};

template <class T> const AscentKernels<T>& ascent_kernels();  // of the instruction set in use

}  // namespace mercer
