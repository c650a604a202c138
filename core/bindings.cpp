// The verbs of the core as Python functions: arrays become pointers, shapes are checked,
// the lock is released.
#include "bind_args.hpp"

namespace mercer {

void bind_qp(nb::module_& m);
void bind_ascent(nb::module_& m);
void bind_lanczos(nb::module_& m);

namespace {

// f<double>() or f<float>() by the type of the data.
#define MERCER_BY_TYPE(f, ...) (single(views, rows) ? f<float>(__VA_ARGS__) : f<double>(__VA_ARGS__))

template <class T>
bool py_gram(const Program& p, nb::handle views, nb::handle rows, nb::handle columns, nb::handle out,
             int threads) {
    auto args = arguments<T>(views, rows, columns);
    auto K = writable<T, 2>(out, "out");
    need_shape(K, "out", args.in.n, args.in.m);
    args.refuse_overlap(K, "out");
    return release([&](const Poll& poll) { return gram(p, args.in, K.data(), threads, poll); });
}

template <class T>
void py_apply(const Program& p, nb::handle views, nb::handle rows, nb::handle columns, nb::handle V,
              nb::handle out, int threads, const std::vector<int64_t>& ends, int64_t kept) {
    auto args = arguments<T>(views, rows, columns);
    args.in.ends = ends, args.in.kept = kept;
    auto v = array<T, 2>(V, "V");
    args.span(v);
    auto y = writable<T, 2>(out, "out");
    need_shape(v, "V", args.in.m, int64_t(v.shape(1)));
    need_shape(y, "out", args.in.n, int64_t(v.shape(1)));
    args.refuse_overlap(y, "out");
    release(
        [&](const Poll& poll) { apply(p, args.in, v.data(), int64_t(v.shape(1)), y.data(), threads, poll); });
}

template <class T>
void py_diag(const Program& p, nb::handle views, nb::handle rows, nb::handle columns, nb::handle out,
             int threads) {
    auto args = arguments<T>(views, rows, columns);
    if (!args.in.same)
        bad("diag needs the same observations on both sides: pass None as the second part of views and rows");
    auto y = writable<T, 1>(out, "out");
    need_length(y, "out", args.in.n);
    args.refuse_overlap(y, "out");
    release([&](const Poll& poll) { diag(p, args.in, y.data(), threads, poll); });
}

template <class T> nb::dict answer(const Inputs<T>& in, Gradients&& g, bool inputs) {
    nb::dict d;
    nb::list views, rows, xz;
    for (size_t k = 0; k < g.views.size(); ++k) {
        const int64_t columns = int64_t(g.views[k].size()) / 2;
        views.append(owned(std::move(g.views[k]), 2, columns));
    }
    for (size_t k = 0; k < g.u.size(); ++k)
        rows.append(nb::make_tuple(owned(std::move(g.u[k]), in.n, -1), owned(std::move(g.v[k]), in.m, -1)));
    for (size_t k = 0; k < g.x.size(); ++k)
        xz.append(nb::make_tuple(owned(std::move(g.x[k]), in.n, in.views[k].d),
                                 owned(std::move(g.z[k]), in.m, in.views[k].d)));
    const int64_t p = int64_t(g.params.size());
    d["params"] = owned(std::move(g.params), p, -1);
    d["views"] = views;
    d["rows"] = rows;
    if (inputs) d["inputs"] = xz;
    return d;
}

template <class T>
nb::dict py_contract(const Program& p, nb::handle views, nb::handle rows, nb::handle columns, nb::handle U,
                     nb::handle V, nb::handle W, int threads, bool inputs, const std::vector<bool>& wanted,
                     const std::vector<int64_t>& ends, int64_t kept) {
    auto args = arguments<T>(views, rows, columns);
    args.in.wanted.assign(wanted.begin(), wanted.end());
    args.in.ends = ends, args.in.kept = kept;
    Weights<T> weights;
    In<T, 2> w, u, v;
    if (W.is_none() == (U.is_none() || V.is_none()) || U.is_none() != V.is_none())
        bad("pass either W or both U and V");
    if (!W.is_none()) {
        w = array<T, 2>(W, "W");
        need_shape(w, "W", args.in.n, args.in.m);
        weights.w = w.data();
        if (!weights.w) weights.w = reinterpret_cast<const T*>(&weights);  // empty: never read
    } else {
        u = array<T, 2>(U, "U"), v = array<T, 2>(V, "V");
        weights.r = int64_t(u.shape(1));
        need_shape(u, "U", args.in.n, weights.r);
        need_shape(v, "V", args.in.m, weights.r);
        weights.u = u.data(), weights.v = v.data();
    }
    Gradients gradients =
        release([&](const Poll& poll) { return contract(p, args.in, weights, inputs, threads, poll); });
    return answer(args.in, std::move(gradients), inputs);
}

template <class T>
nb::dict py_contract_diag(const Program& p, nb::handle views, nb::handle rows, nb::handle columns,
                          nb::handle weights, int threads, bool inputs, const std::vector<bool>& wanted) {
    auto args = arguments<T>(views, rows, columns);
    args.in.wanted.assign(wanted.begin(), wanted.end());
    if (!args.in.same)
        bad("contract_diag needs the same observations on both sides: "
            "pass None as the second part of views and rows");
    auto w = array<T, 1>(weights, "w");
    need_length(w, "w", args.in.n);
    Gradients gradients =
        release([&](const Poll& poll) { return contract_diag(p, args.in, w.data(), inputs, threads, poll); });
    return answer(args.in, std::move(gradients), inputs);
}

void py_waves(nb::handle x, nb::handle frequencies, nb::handle weight, nb::handle out, int threads) {
    Arguments<double> args;
    auto a = array<double, 2>(x, "x");
    auto w = array<double, 1>(weight, "weight");
    auto y = writable<double, 2>(out, "out");
    const int64_t n = int64_t(a.shape(0)), d = int64_t(a.shape(1)), m = int64_t(w.shape(0));
    In<double, 2> f;
    if (!frequencies.is_none()) {
        f = array<double, 2>(frequencies, "frequencies");
        need_shape(f, "frequencies", m, d);
        args.span(f);
    } else {
        need_shape(a, "x, the phases,", n, m);
    }
    need_shape(y, "out", n, 2 * m);
    args.span(a);
    args.span(w);
    args.refuse_overlap(y, "out");
    const double* f_data = frequencies.is_none() ? nullptr : f.data();
    release([&](const Poll& poll) { waves(a.data(), n, d, f_data, w.data(), m, y.data(), threads, poll); });
}

template <class T> void py_math(int which, nb::handle in, nb::handle out, double p) {
    auto a = array<T, 1>(in, "the input");
    auto b = writable<T, 1>(out, "out");
    need_length(b, "out", int64_t(a.shape(0)));
    kernels<T>().elementwise(which, a.data(), b.data(), int64_t(a.shape(0)), p);
}
void math(int which, nb::handle in, nb::handle out, double p) {
    nb::ndarray<nb::ro> a;
    is_array(in, a) && a.dtype() == nb::dtype<float>() ? py_math<float>(which, in, out, p)
                                                       : py_math<double>(which, in, out, p);
}

}  // namespace
}  // namespace mercer

NB_MODULE(_core, m) {
    using namespace mercer;
    m.doc() = "The compiled core of mercer: kernel programs run tile by tile.";
    nb::set_leak_warnings(false);  // operators that live until the interpreter ends are no leak

    nb::dict opcodes;
    for (int32_t c = 0; c < kOpcodes; ++c) opcodes[opcode_name(c)] = c;
    m.attr("OPCODES") = opcodes;
    m.attr("PART") = kPart;

    m.def("instruction_set", [] { return current_isa().name; }, "The instruction set the core runs with.");
    m.def("force_isa", &force_isa, "name"_a,
          "Use this instruction set from now on; False if the CPU lacks it. For tests.");

    m.def("crew_size", &crew_size, "threads"_a, "steps"_a,
          "How many threads work of so many steps gets, all or one.");
    m.def(
        "force_threads", [](bool all) { threads_for_all = all; }, "all"_a,
        "Give threads to the least work, too, where they are asked for. For tests.");

    nb::class_<Program>(m, "Program", "A kernel as a postfix program: rows (opcode, a, b) and parameters.")
        .def(
            "__init__",
            [](Program* self, nb::handle code, nb::handle params) {
                auto c = array<int32_t, 2>(code, "code");
                need_shape(c, "code", int64_t(c.shape(0)), 3);
                auto p = array<double, 1>(params, "params");
                new (self)
                    Program(make_program(c.data(), int64_t(c.shape(0)), p.data(), int64_t(p.shape(0))));
            },
            "code"_a, "params"_a)
        .def_prop_ro("steps", [](const Program& p) { return p.ops.size(); });

    m.def(
        "gram",
        [](const Program& p, nb::handle views, nb::handle rows, nb::handle columns, nb::handle out,
           int threads) { return MERCER_BY_TYPE(py_gram, p, views, rows, columns, out, crew(threads)); },
        "program"_a, "views"_a, "rows"_a, "columns"_a, "out"_a, "threads"_a = 1,
        "out = K, n x m. Whether all of it is finite.");
    m.def(
        "apply",
        [](const Program& p, nb::handle views, nb::handle rows, nb::handle columns, nb::handle V,
           nb::handle out, int threads, const std::vector<int64_t>& ends, int64_t kept) {
            MERCER_BY_TYPE(py_apply, p, views, rows, columns, V, out, crew(threads), ends, kept);
        },
        "program"_a, "views"_a, "rows"_a, "columns"_a, "V"_a, "out"_a, "threads"_a = 1,
        "ends"_a = std::vector<int64_t>(), "kept"_a = 0,
        "out = K @ V without K. With `ends`, at multiples of PART, pairs of rows of one part are left out, "
        "except for those of the part `kept`.");
    m.def(
        "diag",
        [](const Program& p, nb::handle views, nb::handle rows, nb::handle columns, nb::handle out,
           int threads) { MERCER_BY_TYPE(py_diag, p, views, rows, columns, out, crew(threads)); },
        "program"_a, "views"_a, "rows"_a, "columns"_a, "out"_a, "threads"_a = 1, "out[i] = k(x_i, x_i).");

    m.def(
        "contract",
        [](const Program& p, nb::handle views, nb::handle rows, nb::handle columns, nb::handle U,
           nb::handle V, nb::handle W, int threads, bool inputs, const std::vector<bool>& wanted,
           const std::vector<int64_t>& ends, int64_t kept) {
            return MERCER_BY_TYPE(py_contract, p, views, rows, columns, U, V, W, crew(threads), inputs,
                                  wanted, ends, kept);
        },
        "program"_a, "views"_a, "rows"_a, "columns"_a, "U"_a.none() = nb::none(), "V"_a.none() = nb::none(),
        "W"_a.none() = nb::none(), "threads"_a = 1, "inputs"_a = false, "wanted"_a = std::vector<bool>(),
        "ends"_a = std::vector<int64_t>(), "kept"_a = 0,
        "Gradients of sum(W * K), W = U @ V.T or explicit: params, views (those `wanted`; "
        "all if it is empty), rows and, if asked, inputs. `ends` and `kept` as in apply.");
    m.def(
        "contract_diag",
        [](const Program& p, nb::handle views, nb::handle rows, nb::handle columns, nb::handle w, int threads,
           bool inputs, const std::vector<bool>& wanted) {
            return MERCER_BY_TYPE(py_contract_diag, p, views, rows, columns, w, crew(threads), inputs,
                                  wanted);
        },
        "program"_a, "views"_a, "rows"_a, "columns"_a, "w"_a, "threads"_a = 1, "inputs"_a = false,
        "wanted"_a = std::vector<bool>(), "Gradients of sum_i w_i k(x_i, x_i).");

    m.def(
        "waves",
        [](nb::handle x, nb::handle frequencies, nb::handle weight, nb::handle out, int threads) {
            py_waves(x, frequencies, weight, out, crew(threads));
        },
        "x"_a, "frequencies"_a.none(), "weight"_a, "out"_a, "threads"_a = 1,
        "out = (weight cos t | weight sin t), n x 2m, with t = x @ frequencies.T; t = x for None.");

    const char* names[] = {"vexp", "vlog", "vsin", "vcos", "vtanh", "vacos", "vlog1p"};
    const int codes[] = {0, 1, 3, 4, 5, 6, 7};
    for (size_t i = 0; i < std::size(codes); ++i)
        m.def(
            names[i], [which = codes[i]](nb::handle in, nb::handle out) { math(which, in, out, 0); }, "x"_a,
            "out"_a);
    m.def(
        "vpow", [](nb::handle in, double p, nb::handle out) { math(2, in, out, p); }, "x"_a, "p"_a, "out"_a);
    bind_qp(m);
    bind_ascent(m);
    bind_lanczos(m);
}
