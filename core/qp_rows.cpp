// Where the solver's rows of K come from: an array, or the tile engine.
#include <cmath>

#include "prepare.hpp"
#include "qp.hpp"

namespace mercer {
namespace {

// Below this many entries a second thread costs more than it brings.
constexpr int64_t kWorthThreads = 1 << 17;

// Positions as runs of neighbours, which are copied and summed at the speed of memory.
struct ColumnRuns {
    struct Part {
        int64_t from, to, length;  // position in the long row, in the short one
    };
    std::vector<Part> parts;

    explicit ColumnRuns(const std::vector<int64_t>& positions = {}) {
        for (size_t k = 0; k < positions.size(); ++k) {
            if (!parts.empty() && positions[k] == parts.back().from + parts.back().length)
                ++parts.back().length;
            else parts.push_back({positions[k], int64_t(k), 1});
        }
    }
    template <class S, class T> void copy(const S* row, T* out) const {
        for (const Part p : parts) {
            const S* from = row + p.from;
            T* to = out + p.to;
            for (int64_t c = 0; c < p.length; ++c) to[c] = T(from[c]);
        }
    }
    // The same with a number for the row and one for each column subtracted.
    template <class S, class T>
    void copy(const S* row, T* out, double of_row, const double* of_columns) const {
        for (const Part p : parts)
            for (int64_t c = 0; c < p.length; ++c)
                out[p.to + c] = T(double(row[p.from + c]) - (of_row + of_columns[p.to + c]));
    }
    // No longer than `most`: pieces of work.
    std::vector<Part> cut(int64_t most) const {
        std::vector<Part> out;
        for (const Part& p : parts)
            for (int64_t c = 0; c < p.length; c += most)
                out.push_back({p.from + c, p.to + c, std::min(most, p.length - c)});
        return out;
    }
};

template <class T, class S> class DenseRows final : public RowSource<T> {
  public:
    DenseRows(const S* K, int64_t side, const std::vector<int64_t>& which)
        : K_(K), side_(side), which_(which), all_(which) {
        this->n = int64_t(which.size());
        this->exact = sizeof(T) >= sizeof(S);
        this->stored = this->cheap = true;
        for (int64_t r : which) this->diag.push_back(double(row(r)[r]));
        for (double d : this->diag) this->norm.push_back(std::sqrt(std::abs(d)));
    }
    // The origin is one of a few rows, if that makes all products much smaller; it costs these rows alone.
    void recentre() override {
        std::vector<double> best;
        double smallest = 0;
        for (double d : this->diag) smallest = std::max(smallest, kMuchSmaller * std::abs(d));
        for (int64_t k = 0; k < std::min<int64_t>(kOrigins, this->n); ++k) {
            const S* c = row(which_[size_t(k * this->n / kOrigins % this->n)]);
            std::vector<double> seen;
            double top = 0;
            for (int64_t i = 0; i < this->n; ++i) {
                seen.push_back(this->diag[size_t(i)] - 2 * shift(c, i, k));
                top = std::max(top, std::abs(seen.back()));
            }
            if (!(top < smallest)) continue;
            smallest = top;
            best = std::move(seen);
            shift_.clear();
            for (int64_t i = 0; i < this->n; ++i) shift_.push_back(shift(c, i, k));
        }
        if (!shift_.empty()) this->diag = std::move(best);
    }
    void focus(const std::vector<int64_t>& columns) override {
        std::vector<int64_t> at;
        for (int64_t c : columns) at.push_back(which_[size_t(c)]);
        columns_ = ColumnRuns(at);
        shift_in_focus_.clear();
        if (!shift_.empty())
            for (int64_t c : columns) shift_in_focus_.push_back(shift_[size_t(c)]);
    }
    void rows(const std::vector<int64_t>& which, T* const* out, int, const Poll&) override {
        for (size_t k = 0; k < which.size(); ++k) {
            const S* from = row(which_[size_t(which[k])]);
            if (shift_.empty()) columns_.copy(from, out[k]);
            else columns_.copy(from, out[k], shift_[size_t(which[k])], shift_in_focus_.data());
        }
    }
    void square(const std::vector<int64_t>& which, T* out, int, const Poll&) override {
        for (int64_t a : which)
            for (int64_t b : which) {
                const S value = row(which_[size_t(a)])[which_[size_t(b)]];
                *out++ =
                    shift_.empty() ? T(value) : T(double(value) - (shift_[size_t(a)] + shift_[size_t(b)]));
            }
    }
    void apply(const std::vector<int64_t>& which, const std::vector<double>& d, double* f, int threads,
               const Poll& poll) override {
        const auto pieces = all_.cut(2048);
        const int64_t count = int64_t(which.size());
        Crew crew(this->n * count < kWorthThreads ? 1 : threads, poll);
        crew.run(int64_t(pieces.size()), [&](int worker, auto& take) {
            std::vector<const S*> rows(which.size());
            for (int64_t t; (t = take()) >= 0;) {
                const auto& p = pieces[size_t(t)];
                for (size_t k = 0; k < which.size(); ++k) rows[k] = row(which_[size_t(which[k])]) + p.from;
                qp_kernels<S>().accumulate(rows.data(), d.data(), count, 0, p.length, f + p.to);
                crew.checkpoint(worker);
            }
        });
    }

  private:
    static constexpr int64_t kOrigins = 4;
    static constexpr double kMuchSmaller = 0.25;

    const S* row(int64_t r) const { return K_ + r * side_; }
    // With origin c: K_ij - shift_i - shift_j = k(i, j) - k(i, c) - k(c, j) + k(c, c).
    double shift(const S* c, int64_t i, int64_t k) const {
        return double(c[which_[size_t(i)]]) - 0.5 * this->diag[size_t(k * this->n / kOrigins % this->n)];
    }

    const S* K_;
    const int64_t side_;
    const std::vector<int64_t>& which_;
    ColumnRuns all_, columns_;
    std::vector<double> shift_, shift_in_focus_;  // of every row, of the columns in focus; empty: as given
};

// ---- the tile engine -----------------------------------------------------------------------------------

// Some observations of a caller's sample, in precision T, contiguous.
template <class T> struct Sample {
    std::vector<std::vector<T>> dense, values, u;  // per view, per view (sparse data), per row vector
    Inputs<T> in;
};

// Sparse rows that are mostly full are better written out: then they can be centred, too.
constexpr int64_t kDenser = 2;

template <class S> bool worth_dense(const SparseRows<S>& s, int64_t d) {
    return s.rows > 0 && d * s.rows <= kDenser * int64_t(s.indices.size()) && d * s.rows <= int64_t(1) << 28;
}

// `origin`: per view empty, or a point to subtract from its rows.
using Origins = std::vector<std::vector<double>>;

template <class T, class S>
void take_rows(const Inputs<S>& from, const std::vector<int64_t>& which, Sample<T>& to,
               const Origins& origin = {}) {
    const int64_t count = int64_t(which.size());
    to.dense.assign(from.views.size(), {});
    to.values.assign(from.views.size(), {});
    to.u.assign(from.rows.size(), {});
    to.in = {};
    to.in.n = to.in.m = count;
    to.in.same = true;
    to.in.columns = from.columns;
    for (size_t k = 0; k < from.views.size(); ++k) {
        const ViewInput<S>& v = from.views[k];
        const double* o = k < origin.size() && !origin[k].empty() ? origin[k].data() : nullptr;
        ViewInput<T> w;
        w.d = v.d;
        if (!v.sparse) {
            to.dense[k].resize(size_t(count * v.d));
            for (int64_t i = 0; i < count; ++i)
                for (int64_t c = 0; c < v.d; ++c)
                    to.dense[k][size_t(i * v.d + c)] =
                        T(double(v.x[which[size_t(i)] * v.d + c]) - (o ? o[c] : 0.0));
        } else if (worth_dense(v.sx, v.d)) {
            to.dense[k].resize(size_t(count * v.d));
            for (int64_t i = 0; i < count * v.d; ++i) to.dense[k][size_t(i)] = T(o ? -o[i % v.d] : 0.0);
            for (int64_t i = 0; i < count; ++i)
                for (int64_t a = v.sx.indptr[size_t(which[size_t(i)])];
                     a < v.sx.indptr[size_t(which[size_t(i)]) + 1]; ++a)
                    to.dense[k][size_t(i * v.d + v.sx.indices[size_t(a)])] =
                        T(double(v.sx.data[a]) - (o ? o[v.sx.indices[size_t(a)]] : 0.0));
        } else {
            w.sparse = true;
            w.sx.rows = count;
            w.sx.indptr.push_back(0);
            for (int64_t r : which) {
                for (int64_t a = v.sx.indptr[size_t(r)]; a < v.sx.indptr[size_t(r) + 1]; ++a) {
                    w.sx.indices.push_back(v.sx.indices[size_t(a)]);
                    to.values[k].push_back(T(v.sx.data[a]));
                }
                w.sx.indptr.push_back(int64_t(w.sx.indices.size()));
            }
            w.sx.data = to.values[k].data();
        }
        w.x = to.dense[k].data();
        to.in.views.push_back(std::move(w));
    }
    for (size_t k = 0; k < from.rows.size(); ++k) {
        for (int64_t r : which) to.u[k].push_back(T(from.rows[k].u[r]));
        to.in.rows.push_back({to.u[k].data(), nullptr});
    }
}

// The mean row of each view that only squared distances read: around it float32 loses least to cancellation.
template <class S> Origins centres(const Program& program, const Inputs<S>& data) {
    Origins out(data.views.size());
    for (size_t k = 0; k < out.size(); ++k) {
        bool shifts = true, read = false;
        for (const Op& op : program.ops)
            if (op.primitive >= 0 && size_t(op.a) == k) read = true, shifts &= op.code == SQDIST;
        const ViewInput<S>& v = data.views[k];
        if (!read || !shifts || (v.sparse && !worth_dense(v.sx, v.d))) continue;
        out[k].assign(size_t(v.d), 0.0);
        if (v.sparse) {
            for (size_t a = 0; a < v.sx.indices.size(); ++a)
                out[k][size_t(v.sx.indices[a])] += double(v.sx.data[a]);
        } else {
            for (int64_t i = 0; i < data.n; ++i)
                for (int64_t c = 0; c < v.d; ++c) out[k][size_t(c)] += double(v.x[i * v.d + c]);
        }
        for (double& c : out[k]) c /= double(data.n);
    }
    return out;
}

// About how many products an entry of K takes, counted in those of dense rows.
constexpr int64_t kSparseTerm = 8;
template <class S> int64_t terms(const Inputs<S>& data) {
    int64_t total = 0;
    for (const ViewInput<S>& v : data.views)
        total += v.sparse ? kSparseTerm * int64_t(v.sx.indices.size()) / std::max<int64_t>(data.n, 1) : v.d;
    return total;
}
// Up to so many a row in float32 takes less time than the first touch of its memory.
constexpr int64_t kCheapTerms = 128;

// The program with its DELTA steps (noise where both sides are one observation) worth nothing.
Program without_noise(const Program& program) {
    Program out = program;
    out.params.push_back(0.0);
    for (Op& op : out.ops)
        if (op.code == DELTA) op.code = CONST, op.a = int32_t(out.params.size()) - 1;
    return out;
}

// Some rows against prepared columns: fused tiles, each entry inside one tile.
template <class T> class Block {
  public:
    Block(const Program& program, const Sample<T>& columns) : prep_(program, columns.in, false) {}

    template <class Store> void run(const Sample<T>& x, int threads, const Poll& poll, const Store& store) {
        Call<T> call = prep_.call;
        std::vector<View<T>> views(call.views, call.views + x.in.views.size());
        std::vector<Row<T>> rows(call.rows, call.rows + x.in.rows.size());
        std::vector<Buffer<T>> norms;
        for (size_t k = 0; k < views.size(); ++k) {
            View<T>& v = views[k];
            const ViewInput<T>& w = x.in.views[k];
            v.x = w.x;
            v.sx = {w.sx.data, w.sx.indices.data(), w.sx.indptr.data()};
            if (!v.xx) continue;
            norms.emplace_back(x.in.n);
            if (w.sparse) {
                for (int64_t i = 0; i < x.in.n; ++i) {
                    double total = 0;
                    for (int64_t a = w.sx.indptr[size_t(i)]; a < w.sx.indptr[size_t(i) + 1]; ++a)
                        total += double(w.sx.data[a]) * double(w.sx.data[a]);
                    norms.back().get()[i] = T(total);
                }
            } else {
                prep_.isa.norms(w.x, x.in.n, w.d, norms.back().get());
            }
            v.xx = norms.back().get();
        }
        for (size_t k = 0; k < rows.size(); ++k) rows[k].u = x.u[k].data();
        call.n = x.in.n;
        call.same = false;
        call.views = views.data();
        call.rows = rows.data();
        const int64_t tile = prep_.tile, nb = (call.n + tile - 1) / tile, mb = (call.m + tile - 1) / tile;
        Crew crew(call.n * call.m < kWorthThreads ? 1 : threads, poll);
        crew.run(mb, [&](int worker, auto& take) {
            Workspace<T> workspace(prep_);
            for (int64_t J; (J = take()) >= 0;)
                for (int64_t I = 0; I < nb; ++I) {
                    const int64_t i0 = I * tile, j0 = J * tile;
                    const int64_t height = std::min(tile, call.n - i0), width = std::min(tile, call.m - j0);
                    const Tile t{i0, height, j0, width, round_up(width, prep_.isa.panel), false};
                    prep_.isa.evaluate(call, t, workspace.work);
                    store(t, workspace.work.result);
                    crew.checkpoint(worker);
                }
        });
    }

  private:
    Prepared<T> prep_;
};

std::vector<int64_t> everything(int64_t n) {
    std::vector<int64_t> all(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) all[size_t(i)] = i;
    return all;
}

template <class T, class S> class TileRows final : public RowSource<T> {
  public:
    TileRows(const Program& program, const Inputs<S>& data, const std::vector<int64_t>& which, int threads,
             const Poll& poll)
        : quiet_(without_noise(program)), data_(int64_t(which.size()) == data.n ? data : part_.in) {
        if (int64_t(which.size()) < data.n) take_rows(data, which, part_);
        this->n = data_.n;
        if constexpr (std::is_same_v<S, double>) {
            diagonals(program, data_, threads, poll);
        } else {
            Sample<double> all;
            take_rows(data_, everything(data_.n), all);
            diagonals(program, all.in, threads, poll);
        }
        for (double d : this->diag) this->norm.push_back(std::sqrt(std::abs(d)));
        this->exact = std::is_same_v<T, double>;
        if (!this->exact) origin_ = centres(program, data_);
        this->cheap = terms(data_) <= kCheapTerms;
    }

    void focus(const std::vector<int64_t>& columns) override {
        place_.assign(size_t(this->n), -1);
        for (size_t c = 0; c < columns.size(); ++c) place_[size_t(columns[c])] = int64_t(c);
        take_rows(data_, columns, columns_, origin_);
        block_ = std::make_unique<Block<T>>(quiet_, columns_);
    }

    void rows(const std::vector<int64_t>& which, T* const* out, int threads, const Poll& poll) override {
        if (which.empty()) return;
        Sample<T> x;
        take_rows(data_, which, x, origin_);
        block_->run(x, threads, poll, [&](const Tile& t, const T* K) {
            for (int64_t i = 0; i < t.rows; ++i)
                std::memcpy(out[t.i0 + i] + t.j0, K + i * t.ld, size_t(t.cols) * sizeof(T));
        });
        for (size_t k = 0; k < which.size(); ++k) {
            const int64_t c = place_[size_t(which[k])];
            if (c >= 0) out[k][c] = T(this->diag[size_t(which[k])]);
        }
    }

    void square(const std::vector<int64_t>& which, T* out, int threads, const Poll& poll) override {
        Sample<T> x;
        take_rows(data_, which, x, origin_);
        gram(quiet_, x.in, out, threads, poll);
        const size_t q = which.size();
        for (size_t k = 0; k < q; ++k) out[k * q + k] = T(this->diag[size_t(which[k])]);
    }

    // The chosen rows meet each other in half of the pairs, and all the other rows once.
    void apply(const std::vector<int64_t>& which, const std::vector<double>& d, double* f, int threads,
               const Poll& poll) override {
        if (which.empty()) return;
        Sample<double> chosen, unchosen;
        take_rows(data_, which, chosen);
        std::vector<double> sum(which.size(), 0.0);
        mercer::apply(quiet_, chosen.in, d.data(), 1, sum.data(), threads, poll);
        for (size_t k = 0; k < which.size(); ++k)
            f[which[k]] += sum[k] + d[k] * (this->diag[size_t(which[k])] - plain_[size_t(which[k])]);
        std::vector<char> is_chosen(size_t(this->n), 0);
        for (int64_t r : which) is_chosen[size_t(r)] = 1;
        std::vector<int64_t> others;
        for (int64_t r = 0; r < this->n; ++r)
            if (!is_chosen[size_t(r)]) others.push_back(r);
        if (others.empty()) return;
        take_rows(data_, others, unchosen);
        for (size_t k = 0; k < unchosen.in.views.size(); ++k) {
            unchosen.in.views[k].z = chosen.in.views[k].x;
            unchosen.in.views[k].sz = chosen.in.views[k].sx;
        }
        for (size_t k = 0; k < unchosen.in.rows.size(); ++k) unchosen.in.rows[k].v = chosen.u[k].data();
        unchosen.in.m = int64_t(which.size());
        unchosen.in.same = false;
        sum.assign(others.size(), 0.0);
        mercer::apply(quiet_, unchosen.in, d.data(), 1, sum.data(), threads, poll);
        for (size_t k = 0; k < others.size(); ++k) f[others[k]] += sum[k];
    }

  private:
    void diagonals(const Program& program, const Inputs<double>& in, int threads, const Poll& poll) {
        this->diag.resize(size_t(this->n));
        plain_.resize(size_t(this->n));
        mercer::diag(program, in, this->diag.data(), threads, poll);
        mercer::diag(quiet_, in, plain_.data(), threads, poll);
    }

    Program quiet_;
    Sample<S> part_;
    const Inputs<S>& data_;
    Origins origin_;
    std::vector<double> plain_;  // the diagonal without noise
    std::vector<int64_t> place_;
    Sample<T> columns_;
    std::unique_ptr<Block<T>> block_;
};

}  // namespace

template <class T, class S>
std::unique_ptr<RowSource<T>> dense_rows(const S* K, int64_t n, const std::vector<int64_t>& which) {
    return std::make_unique<DenseRows<T, S>>(K, n, which);
}
template <class T, class S>
std::unique_ptr<RowSource<T>> tile_rows(const Program& program, const Inputs<S>& data,
                                        const std::vector<int64_t>& which, int threads, const Poll& poll) {
    check(program, data);
    return std::make_unique<TileRows<T, S>>(program, data, which, threads, poll);
}

template std::unique_ptr<RowSource<double>> dense_rows(const double*, int64_t, const std::vector<int64_t>&);
template std::unique_ptr<RowSource<float>> dense_rows(const float*, int64_t, const std::vector<int64_t>&);
template std::unique_ptr<RowSource<float>> dense_rows(const double*, int64_t, const std::vector<int64_t>&);
template std::unique_ptr<RowSource<double>> dense_rows(const float*, int64_t, const std::vector<int64_t>&);
template std::unique_ptr<RowSource<float>> tile_rows(const Program&, const Inputs<double>&,
                                                     const std::vector<int64_t>&, int, const Poll&);
template std::unique_ptr<RowSource<float>> tile_rows(const Program&, const Inputs<float>&,
                                                     const std::vector<int64_t>&, int, const Poll&);
template std::unique_ptr<RowSource<double>> tile_rows(const Program&, const Inputs<double>&,
                                                      const std::vector<int64_t>&, int, const Poll&);
template std::unique_ptr<RowSource<double>> tile_rows(const Program&, const Inputs<float>&,
                                                      const std::vector<int64_t>&, int, const Poll&);

namespace baseline { extern const QpIsa qp_table; }
#if defined(__x86_64__)
namespace avx2 { extern const QpIsa qp_table; }
namespace avx512 { extern const QpIsa qp_table; }
#endif

static const QpIsa& qp_isa() {
    const std::string name = current_isa().name;
#if defined(__x86_64__)
    if (name == "avx2") return avx2::qp_table;
    if (name == "avx512") return avx512::qp_table;
#endif
    return baseline::qp_table;
}
template <> const QpKernels<double>& qp_kernels<double>() { return qp_isa().f64; }
template <> const QpKernels<float>& qp_kernels<float>() { return qp_isa().f32; }
bool qp_solve_system(double* M, double* x, int64_t size) { return qp_isa().solve(M, x, size); }

}  // namespace mercer
