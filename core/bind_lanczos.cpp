// Lanczos' basis as one Python function.
#include "bind_args.hpp"
#include "lanczos.hpp"

namespace mercer {

void bind_lanczos(nb::module_& m) {
    m.def(
        "lanczos",
        [](nb::handle K, bool centred, nb::handle Q, nb::handle T, nb::handle rest, int64_t from, int64_t to,
           int threads) {
            auto k = array<double, 2>(K, "K");
            auto q = writable<double, 2>(Q, "Q");
            auto t = writable<double, 2>(T, "T");
            auto r = writable<double, 1>(rest, "rest");
            const int64_t n = int64_t(k.shape(0)), most = int64_t(q.shape(0));
            need_shape(k, "K", n, n);
            need_shape(q, "Q", most, n);
            need_shape(t, "T", most, most);
            need_length(r, "rest", most);
            if (from < 0 || from > to || to > most)
                bad("from and to must be in order, between 0 and the rows of Q");
            const SymmetricMatrix matrix{k.data(), n, centred};
            const LanczosBasis basis{q.data(), t.data(), r.data(), most};
            const int workers = crew(threads);
            return release([&](const Poll& poll) { return lanczos(matrix, basis, from, to, workers, poll); });
        },
        "K"_a, "centred"_a, "Q"_a, "T"_a, "rest"_a, "start"_a, "stop"_a, "threads"_a = 1,
        "Multiplies rows start .. stop of the orthonormal Q by the symmetric K, or HKH, and writes those "
        "that follow, T = Q K Q' and the lengths of what is left. How many rows are multiplied: fewer than "
        "stop where the space is invariant.");
}

}  // namespace mercer
