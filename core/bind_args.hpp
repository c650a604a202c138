// What every binding shares: Python arguments as typed arrays, checked; the lock released
// while the core works.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "verbs.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace mercer {
namespace {

template <class T, int N> using In = nb::ndarray<const T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
template <class T, int N> using Out = nb::ndarray<T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;

[[noreturn]] void bad(const std::string& what) { throw std::invalid_argument(what); }

template <class T> constexpr const char* type_name() {
    if (std::is_same_v<T, int32_t>) return "int32";
    return sizeof(T) == 8 ? "float64" : "float32";
}

// An argument as an array of exactly this type and layout; nothing is converted or copied.
template <class A> bool is_array(nb::handle h, A& out) { return !h.is_none() && nb::try_cast(h, out, false); }
template <class T, int N> In<T, N> array(nb::handle h, const std::string& name) {
    In<T, N> a;
    if (!is_array(h, a))
        bad(name + " must be a C-contiguous " + type_name<T>() + " array of " + std::to_string(N) +
            (N == 1 ? " axis" : " axes"));
    return a;
}
template <class T, int N> Out<T, N> writable(nb::handle h, const std::string& name) {
    Out<T, N> a;
    if (!is_array(h, a))
        bad(name + " must be a writable C-contiguous " + type_name<T>() + " array of " + std::to_string(N) +
            (N == 1 ? " axis" : " axes"));
    if (reinterpret_cast<uintptr_t>(a.data()) % sizeof(T) != 0)
        bad(name + " must start at a multiple of " + std::to_string(sizeof(T)) + " bytes");
    return a;
}

// Everything a call reads, with the arrays kept alive and the memory they cover (to refuse an `out` inside).
template <class T> struct Arguments {
    Inputs<T> in;
    std::vector<nb::object> keep;
    std::vector<std::pair<const char*, const char*>> spans;
    bool sized = false, moded = false;

    template <class A> void span(const A& a) {
        const char* p = reinterpret_cast<const char*>(a.data());
        spans.emplace_back(p, p + a.nbytes());
    }
    template <class A> void refuse_overlap(const A& a, const char* name) const {
        const char *p = reinterpret_cast<const char*>(a.data()), *q = p + a.nbytes();
        for (auto& s : spans)
            if (p < s.second && s.first < q)
                bad(std::string(name) + " overlaps an input; pass memory of its own");
    }
    void size(const std::string& name, int64_t n, bool same, int64_t m) {
        if (same) m = n;
        if (moded && same != in.same)
            bad(name + (same ? " has no second part" : " has a second part") +
                ", unlike the ones before; pass None in all of them or in none");
        if (sized && (n != in.n || m != in.m))
            bad(name + " has " + std::to_string(n) + " and " + std::to_string(m) +
                " rows; the ones before have " + std::to_string(in.n) + " and " + std::to_string(in.m));
        sized = moded = true;
        in.n = n, in.m = m, in.same = same;
    }
};

std::vector<int64_t> indices(nb::handle h, const std::string& name) {
    In<int32_t, 1> a;
    if (is_array(h, a)) return {a.data(), a.data() + a.shape(0)};
    In<int64_t, 1> b;
    if (is_array(h, b)) return {b.data(), b.data() + b.shape(0)};
    bad(name + " must be a contiguous int32 or int64 array of 1 axis");
}

// (data, indices, indptr, ncols)
template <class T>
SparseRows<T> sparse(Arguments<T>& args, nb::handle h, const std::string& name, int64_t& d) {
    nb::tuple t = nb::cast<nb::tuple>(h);
    if (t.size() != 4) bad(name + ": sparse rows are (data, indices, indptr, ncols)");
    SparseRows<T> s;
    auto data = array<T, 1>(t[0], name + " data");
    args.span(data);
    s.data = data.data();
    s.indices = indices(t[1], name + " indices");
    s.indptr = indices(t[2], name + " indptr");
    if (!nb::try_cast(t[3], d, false) || d < 0) bad(name + ": ncols must be a non-negative integer");
    if (s.indptr.empty() || s.indices.size() != data.shape(0))
        bad(name + ": data, indices and indptr do not fit together");
    s.rows = int64_t(s.indptr.size()) - 1;
    return s;
}

nb::sequence list(nb::handle h, const char* name) {
    if (!nb::isinstance<nb::list>(h) && !nb::isinstance<nb::tuple>(h))
        bad(std::string(name) + " must be a list");
    return nb::borrow<nb::sequence>(h);
}
void two(nb::handle h, const std::string& name) {
    if (!nb::isinstance<nb::tuple>(h) || nb::len(h) != 2) bad(name + " must be a tuple of two");
}

template <class T> Arguments<T> arguments(nb::handle views, nb::handle rows, nb::handle columns) {
    Arguments<T> args;
    size_t k = 0;
    for (nb::handle item : list(views, "views")) {
        const std::string name = "view " + std::to_string(k++);
        two(item, name);
        nb::object x = item[0], z = item[1];
        ViewInput<T> v;
        const bool same = z.is_none();
        int64_t n = 0, m = 0, other = 0;
        v.sparse = nb::isinstance<nb::tuple>(x);
        if (v.sparse) {
            v.sx = sparse(args, x, name, v.d);
            n = v.sx.rows;
            other = v.d;
            if (!same) {
                if (!nb::isinstance<nb::tuple>(z)) bad(name + " mixes sparse and dense rows");
                v.sz = sparse(args, z, name, other);
                m = v.sz.rows;
            }
        } else {
            auto a = array<T, 2>(x, name);
            args.span(a);
            v.x = a.data(), n = int64_t(a.shape(0)), v.d = other = int64_t(a.shape(1));
            if (!same) {
                auto b = array<T, 2>(z, name);
                args.span(b);
                v.z = b.data(), m = int64_t(b.shape(0)), other = int64_t(b.shape(1));
            }
        }
        if (other != v.d)
            bad(name + " has " + std::to_string(v.d) + " and " + std::to_string(other) + " columns");
        args.size(name, n, same, m);
        args.in.views.push_back(std::move(v));
    }
    k = 0;
    for (nb::handle item : list(rows, "rows")) {
        const std::string name = "rows " + std::to_string(k++);
        two(item, name);
        nb::object u = item[0], v = item[1];
        auto a = array<T, 1>(u, name);
        args.span(a);
        RowInput<T> r{a.data(), nullptr};
        int64_t m = 0;
        if (!v.is_none()) {
            auto b = array<T, 1>(v, name);
            args.span(b);
            r.v = b.data(), m = int64_t(b.shape(0));
        }
        args.size(name, int64_t(a.shape(0)), v.is_none(), m);
        args.in.rows.push_back(r);
    }
    k = 0;
    for (nb::handle item : list(columns, "columns")) {
        auto a = array<double, 1>(item, "columns " + std::to_string(k++));
        args.in.columns.emplace_back(a.data(), a.data() + a.shape(0));
    }
    if (!args.sized)
        bad("pass at least one view or row vector; a view of zero columns tells the number of rows");
    return args;
}

// float32 if the first array of the call is; everything else must then agree.
bool single(nb::handle views, nb::handle rows) {
    for (nb::handle group : {views, rows})
        for (nb::handle item : list(group, "views and rows")) {
            two(item, "each view");
            nb::object x = item[0];
            if (nb::isinstance<nb::tuple>(x)) {
                if (nb::len(x) != 4) bad("sparse rows are (data, indices, indptr, ncols)");
                x = x[0];
            }
            nb::ndarray<nb::ro> a;
            return is_array(x, a) && a.dtype() == nb::dtype<float>();
        }
    return false;
}

int crew(int threads) {
    if (threads < 1) bad("threads must be at least 1; got " + std::to_string(threads));
    return threads > 1024 ? 1024 : threads;
}

inline bool signalled() {
    nb::gil_scoped_acquire lock;
    return PyErr_CheckSignals() != 0;
}

// Runs a verb without the interpreter lock; a Ctrl-C raised by the poll surfaces as its Python exception.
template <class F> auto release(F&& f) {
    static const Poll poll = signalled;
    try {
        nb::gil_scoped_release unlocked;
        return f(poll);
    } catch (const Interrupted&) {
        if (!PyErr_Occurred()) PyErr_SetNone(PyExc_KeyboardInterrupt);
        throw nb::python_error();
    }
}

std::string shape_of(int64_t a, int64_t b) {
    return std::string("(") + std::to_string(a) + ", " + std::to_string(b) + ")";
}

template <class A> void need_shape(const A& a, const char* name, int64_t rows, int64_t cols) {
    if (int64_t(a.shape(0)) != rows || int64_t(a.shape(1)) != cols)
        bad(std::string(name) + " has shape " + shape_of(int64_t(a.shape(0)), int64_t(a.shape(1))) +
            "; needed is " + shape_of(rows, cols));
}
template <class A> void need_length(const A& a, const char* name, int64_t n) {
    if (int64_t(a.shape(0)) != n)
        bad(std::string(name) + " has length " + std::to_string(a.shape(0)) + "; needed is " +
            std::to_string(n));
}

// A float64 numpy array of two axes (or one, cols < 0) that owns its memory.
nb::object owned(std::vector<double>&& values, int64_t rows, int64_t cols) {
    auto* kept = new std::vector<double>(std::move(values));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<double>*>(p); });
    if (cols < 0)
        return nb::cast(nb::ndarray<nb::numpy, double, nb::ndim<1>>(kept->data(), {size_t(rows)}, owner));
    return nb::cast(
        nb::ndarray<nb::numpy, double, nb::ndim<2>>(kept->data(), {size_t(rows), size_t(cols)}, owner));
}

}  // namespace
}  // namespace mercer
