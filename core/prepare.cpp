// Checks and preparation of a call.
#include "prepare.hpp"

namespace mercer {
namespace {

[[noreturn]] void bad(const std::string& what) { throw std::invalid_argument(what); }

template <class T> void check_sparse(const SparseRows<T>& s, int64_t d, size_t view) {
    const std::string where = "view " + std::to_string(view) + ": ";
    const int64_t nnz = int64_t(s.indices.size());
    if (int64_t(s.indptr.size()) != s.rows + 1 || s.indptr.front() != 0 || s.indptr.back() > nnz)
        bad(where + "indptr must hold rows + 1 offsets from 0 to at most the number of stored entries");
    for (int64_t i = 0; i < s.rows; ++i)
        if (s.indptr[i] > s.indptr[i + 1]) bad(where + "indptr decreases at row " + std::to_string(i));
    for (int64_t i = 0; i < s.rows; ++i)
        for (int64_t a = s.indptr[i]; a < s.indptr[i + 1]; ++a) {
            if (s.indices[a] < 0 || s.indices[a] >= d)
                bad(where + "column index " + std::to_string(s.indices[a]) + " in row " + std::to_string(i) +
                    "; there are " + std::to_string(d) + " columns");
            if (a > s.indptr[i] && s.indices[a] <= s.indices[a - 1])
                bad(where + "column indices of row " + std::to_string(i) +
                    " do not increase; sort them and sum duplicates");
        }
}

template <class T> void sparse_norms(const SparseRows<T>& s, T* out) {
    for (int64_t i = 0; i < s.rows; ++i) {
        double total = 0;
        for (int64_t a = s.indptr[i]; a < s.indptr[i + 1]; ++a)
            total += double(s.data[a]) * double(s.data[a]);
        out[i] = T(total);
    }
}

template <class T> int64_t most_stored(const SparseRows<T>& s) {
    int64_t most = 0;
    for (int64_t i = 0; i < s.rows; ++i) most = std::max(most, s.indptr[size_t(i) + 1] - s.indptr[size_t(i)]);
    return most;
}

// Sparse rows as panels of P columns with the zeros written out, the last one filled with the last row.
template <class T> void sparse_panels(const SparseRows<T>& s, int64_t d, int64_t P, T* out) {
    const int64_t padded = round_up(s.rows, P);
    std::fill(out, out + padded * d, T(0));
    for (int64_t j = 0; j < padded; ++j) {
        const int64_t row = std::min(j, s.rows - 1);
        T* panel = out + j / P * P * d + j % P;
        for (int64_t a = s.indptr[row]; a < s.indptr[row + 1]; ++a) panel[s.indices[a] * P] = s.data[a];
    }
}
// Panels, zeros included, are read from memory for every tile; from so many coordinates on it is faster to
// look up the stored ones.
constexpr int64_t kPanelColumns = 400, kMostPanels = int64_t(1) << 26;

// A coordinate that one row in so many stores is written out for all of them: that is faster than
// adding one by one.
constexpr int32_t kOften = 4;
// Entries of one column of tiles, so that 32 bits number them.
constexpr int64_t kMostStored = int64_t(1) << 30;

// A hash table as SparseBlock describes it, in `places` from `begin` on, while it is filled.
struct Table {
    std::vector<SparsePlace>& places;
    size_t begin;
    int bits;

    int64_t mask() const { return (int64_t(1) << bits) - 1; }
    SparsePlace& at(int64_t k) {  // the place of coordinate k, or the empty one where it belongs
        int64_t h = int64_t((uint64_t(k) * kSparseHash) >> (64 - bits));
        while (places[begin + size_t(h)].coordinate != k && places[begin + size_t(h)].coordinate >= 0)
            h = (h + 1) & mask();
        return places[begin + size_t(h)];
    }
};
int table_bits(int64_t count) {  // at least a third of the places stay empty
    int bits = 3;
    while (2 * (int64_t(1) << bits) < 3 * count) ++bits;
    return bits;
}

// Sparse rows may claim any number of columns; sizes computed from this many cannot overflow.
constexpr int64_t kMostColumns = int64_t(1) << 40;

// Up to this many coordinates direct differences cost less than the expansion's extra pass.
constexpr int64_t kDirect = 16;

// Sides of a tile; one that is written, with 384 bytes a row, stays in the first-level cache until it is.
constexpr int64_t kTile = kPart, kDiagonalTile = 384;
template <class T> constexpr int64_t kWrittenTile = 384 / int64_t(sizeof(T));

// From this many coordinates on tiles are larger and their rows are regrouped,
// as long as a stripe of them fits.
constexpr int64_t kGroup = 64, kWideTile = 192, kGroupBytes = int64_t(16) << 20;

template <class T> void check_parts(const Inputs<T>& in) {
    if (in.ends.empty()) return;
    if (!in.same) bad("parts are of the same observations on both sides");
    int64_t before = 0;
    for (int64_t end : in.ends) {
        if (end <= before || before % kPart != 0)
            bad("parts must end one after the other, each but the last at a multiple of " +
                std::to_string(kPart) + " rows");
        before = end;
    }
    if (before != in.n)
        bad("the last part ends at row " + std::to_string(before) + " of " + std::to_string(in.n));
    if (in.kept < 0 || in.kept >= int64_t(in.ends.size())) bad("there is no part " + std::to_string(in.kept));
}

}  // namespace

template <class T> void check(const Program& program, const Inputs<T>& in) {
    auto short_of = [](const char* what, int64_t need, size_t have) {
        if (need > int64_t(have))
            bad("the program reads " + std::string(what) + " " + std::to_string(need - 1) + "; " +
                std::to_string(have) + " were passed");
    };
    short_of("view", program.views, in.views.size());
    short_of("rows", program.rows, in.rows.size());
    short_of("columns", program.columns, in.columns.size());
    for (size_t v = 0; v < in.views.size(); ++v) {
        if (in.views[v].d > kMostColumns) bad("view " + std::to_string(v) + " has more than 2^40 columns");
        if (in.views[v].sparse) {
            check_sparse(in.views[v].sx, in.views[v].d, v);
            if (!in.same) check_sparse(in.views[v].sz, in.views[v].d, v);
        }
    }
    check_parts(in);
    for (const Op& op : program.ops) {
        if (op.primitive < 0) continue;
        const ViewInput<T>& v = in.views[size_t(op.a)];
        if (v.sparse && op.code != DOT && op.code != SQDIST)
            bad(std::string(opcode_name(op.code)) +
                " needs dense rows; only DOT and SQDIST read sparse ones");
        if (op.code == PERIODIC && int64_t(in.columns[size_t(op.b)].size()) != v.d)
            bad("columns " + std::to_string(op.b) + " has length " +
                std::to_string(in.columns[size_t(op.b)].size()) + "; view " + std::to_string(op.a) + " has " +
                std::to_string(v.d) + " columns");
    }
}

// Of one number, such as an exponential or a sine, in multiply-adds.
constexpr int64_t kStep = 8;

template <class T>
Prepared<T>::Prepared(const Program& program, const Inputs<T>& in, bool diagonal, bool written)
    : isa(kernels<T>()), diagonal(diagonal) {
    check(program, in);
    call.ops = program.ops.data();
    call.steps = int32_t(program.ops.size());
    call.depth = program.depth;
    call.primitives = program.primitives;
    call.params = program.params.data();
    call.nparams = int32_t(program.params.size());
    call.n = in.n;
    call.m = in.m;
    call.same = in.same;
    entry_steps_ = kStep;
    for (const Op& op : program.ops) {
        if (op.primitive < 0) entry_steps_ += kStep;
        else
            entry_steps_ +=
                terms(in.views[size_t(op.a)], in.n) * (op.code == SQDIST || op.code == DOT ? 1 : kStep);
    }
    int64_t widest = 0;
    std::vector<char> used(in.views.size(), 0), squared(in.views.size(), 0), turned(in.views.size(), 0);
    for (const Op& op : program.ops)
        if (op.primitive >= 0) {
            used[size_t(op.a)] = 1;
            squared[size_t(op.a)] |= op.code == SQDIST;
            turned[size_t(op.a)] |= op.code == PERIODIC;
        }
    const int64_t padded = round_up(in.m, isa.panel);
    auto keep = [&](int64_t count) {
        storage_.emplace_back(count);
        return storage_.back().get();
    };
    auto pad = [&](T* z) {  // padding repeats the last entry, so that padded columns behave like real ones
        for (int64_t j = in.m; j < padded && in.m > 0; ++j) z[j] = z[in.m - 1];
    };
    for (size_t k = 0; k < in.views.size(); ++k) {
        const ViewInput<T>& v = in.views[k];
        const SparseRows<T>& sz = in.same ? v.sx : v.sz;
        View<T> view{};
        view.d = v.d;
        view.sparse = v.sparse;
        view.x = v.x;
        view.z = in.same ? v.x : v.z;
        view.sx = {v.sx.data, v.sx.indices.data(), v.sx.indptr.data()};
        view.sz = {sz.data, sz.indices.data(), sz.indptr.data()};
        view.expand = squared[k] && (v.sparse || v.d > kDirect);
        view.terms = v.sparse ? std::max(most_stored(v.sx), most_stored(sz)) : v.d;
        if (used[k] && !diagonal && in.n > 0 && in.m > 0) {
            if (!v.sparse) {
                widest = std::max(widest, v.d);
                T* panels = keep(padded * v.d);
                isa.pack(view.z, in.m, v.d, v.d, 1, panels);
                view.panels = panels;
                view.grouped = v.d >= kGroup && v.d <= kGroupBytes / (kWideTile * int64_t(sizeof(T)));
            } else if (v.d <= kPanelColumns && v.d * padded <= kMostPanels) {
                T* panels = keep(padded * v.d);
                sparse_panels(sz, v.d, isa.panel, panels);
                view.panels = panels;
            } else {
                widest = std::max(widest, kGroup);  // one look-up serves a whole row of a tile
            }
            if (turned[k]) {
                T *phases = keep(2 * in.n * v.d), *panels = keep(2 * padded * v.d);
                const T* of_z = phases;
                isa.phases(view.x, in.n * v.d, phases);
                Buffer<T> scratch(in.same ? 0 : 2 * in.m * v.d);
                if (!in.same) {
                    isa.phases(view.z, in.m * v.d, scratch.get());
                    of_z = scratch.get();
                }
                isa.pack(of_z, in.m, 2 * v.d, 2 * v.d, 1, panels);
                view.phases = phases;
                view.phase_panels = panels;
            }
            if (view.expand) {
                T *xx = keep(in.n), *zz = keep(padded);
                if (v.sparse) sparse_norms(v.sx, xx);
                else isa.norms(view.x, in.n, v.d, xx);
                if (in.same) std::copy(xx, xx + in.n, zz);
                else if (v.sparse) sparse_norms(sz, zz);
                else isa.norms(view.z, in.m, v.d, zz);
                pad(zz);
                view.xx = xx;
                view.zz = zz;
            }
        }
        views_.push_back(view);
    }
    for (const RowInput<T>& r : in.rows) {
        T* v = keep(padded);
        if (in.m > 0) std::memcpy(v, in.same ? r.u : r.v, size_t(in.m) * sizeof(T));
        pad(v);
        rows_.push_back({r.u, v});
    }
    for (const auto& c : in.columns) columns_.push_back(c.data());
    call.views = views_.data();
    call.rows = rows_.data();
    call.columns = columns_.data();
    // Wide rows are worth reusing more often.
    tile = written ? kWrittenTile<T> : kTile;
    if (widest >= kGroup) tile = kWideTile;
    if (diagonal) tile = kDiagonalTile;
    if (!in.ends.empty()) {
        tile = kPart;
        kept_ = in.kept;
        for (size_t part = 0; part < in.ends.size(); ++part)
            part_.resize(size_t((in.ends[part] + kPart - 1) / kPart), int64_t(part));
    }
    for (size_t k = 0; k < in.views.size(); ++k) {
        if (!used[k] || diagonal || !in.views[k].sparse || views_[k].panels || in.n == 0 || in.m == 0)
            continue;
        indices_.push_back(
            std::make_unique<SparseIndex<T>>(in.same ? in.views[k].sx : in.views[k].sz, tile, isa.panel));
        views_[k].blocks = indices_.back()->blocks.data();
        views_[k].block = tile;
    }
}

template <class T> SparseIndex<T>::SparseIndex(const SparseRows<T>& rows, int64_t width, int64_t panel) {
    std::vector<SparsePlace> scratch;
    for (int64_t j0 = 0; j0 < rows.rows; j0 += width) {
        const int64_t j1 = std::min(rows.rows, j0 + width);
        const int64_t start = rows.indptr[size_t(j0)], stop = rows.indptr[size_t(j1)];
        if (stop - start > kMostStored)
            bad("more than 2^30 entries are stored in " + std::to_string(j1 - j0) + " sparse rows");
        const int32_t full = int32_t(round_up(j1 - j0, panel));
        // How often each coordinate is stored; then a table no larger than the number of
        // different ones asks for.
        Table count{scratch, 0, table_bits(stop - start)};
        scratch.assign(size_t(count.mask()) + 1, {-1, 0, 0});
        int64_t different = 0;
        for (int64_t e = start; e < stop; ++e) {
            SparsePlace& p = count.at(rows.indices[size_t(e)]);
            different += p.coordinate < 0;
            p.coordinate = rows.indices[size_t(e)];
            ++p.last;
        }
        const size_t entries = column_.size();
        Table table{places_, places_.size(), table_bits(different)};
        places_.resize(places_.size() + size_t(table.mask()) + 1, {-1, 0, 0});
        int32_t total = 0;
        for (const SparsePlace& c : scratch) {
            if (c.coordinate < 0) continue;
            const bool often = stop - start <= kMostStored / kOften && kOften * c.last >= full;
            SparsePlace& p = table.at(c.coordinate);
            p = {c.coordinate, total, often ? total + full : total};  // the others grow as they are filled
            total += often ? full : c.last;
        }
        column_.resize(entries + size_t(total), 0), value_.resize(entries + size_t(total), T(0));
        for (int64_t j = j0; j < j1; ++j)
            for (int64_t e = rows.indptr[size_t(j)]; e < rows.indptr[size_t(j) + 1]; ++e) {
                SparsePlace& p = table.at(rows.indices[size_t(e)]);
                const bool often = p.last - p.first == full;
                const size_t to = entries + size_t(often ? p.first + int32_t(j - j0) : p.last++);
                column_[to] = int32_t(j - j0), value_[to] = rows.data[e];
            }
        blocks.push_back({nullptr, nullptr, nullptr, 64 - table.bits, table.mask(), full});
        ends_.push_back({places_.size(), column_.size()});
    }
    for (size_t k = 0; k < blocks.size(); ++k) {  // the vectors have stopped growing
        const auto [table, entries] = k == 0 ? std::pair<size_t, size_t>(0, 0) : ends_[k - 1];
        blocks[k].places = places_.data() + table;
        blocks[k].column = column_.data() + entries, blocks[k].value = value_.data() + entries;
    }
}

template <class T> Workspace<T>::Workspace(const Prepared<T>& prep, const std::vector<char>* wanted) {
    const Call<T>& c = prep.call;
    const bool reverse = wanted != nullptr;
    const int64_t width = round_up(std::min(prep.tile, std::max<int64_t>(c.m, 1)), prep.isa.panel);
    work.area = prep.diagonal ? width : std::min(prep.tile, std::max<int64_t>(c.n, 1)) * width;
    work.strip = std::max<int64_t>(width, std::min<int64_t>(8192 / int64_t(sizeof(T)), work.area));
    int64_t d = 0, sparse = 0, grouped = 0;
    for (int32_t k = 0; k < c.steps; ++k)
        if (c.ops[k].primitive >= 0) {
            const View<T>& v = c.views[c.ops[k].a];
            if (!v.sparse) d = std::max(d, v.d);
            else if (reverse && (*wanted)[size_t(c.ops[k].a)]) sparse = std::max(sparse, v.d);
            if (v.grouped) grouped = std::max(grouped, v.d);
        }
    const int64_t sizes[] = {work.area,
                             c.primitives * work.area,
                             c.depth * work.strip,
                             reverse ? c.steps * work.strip : 0,
                             reverse ? c.steps * work.strip : 0,
                             reverse ? work.area : 0,
                             reverse ? c.primitives * work.area : 0,
                             reverse ? (3 * d + 3) * prep.isa.panel : 0,
                             sparse,
                             grouped * std::min(prep.tile, c.n)};
    T** parts[] = {&work.result, &work.primitives, &work.stack, &work.values, &work.adjoints,
                   &work.seeds,  &work.slopes,     &work.lanes, &work.dense,  &work.group};
    int64_t total = 0;
    for (int64_t s : sizes) total += round_up(s, 64);
    memory_.reset(total);
    T* at = memory_.get();
    for (size_t i = 0; i < std::size(sizes); ++i) {
        *parts[i] = at;
        at += round_up(sizes[i], 64);
    }
    std::fill(work.dense, work.dense + sparse, T(0));
    work.grouped_view = nullptr;
}

template void check(const Program&, const Inputs<double>&);
template void check(const Program&, const Inputs<float>&);
template struct SparseIndex<double>;
template struct SparseIndex<float>;
template class Prepared<double>;
template class Prepared<float>;
template class Workspace<double>;
template class Workspace<float>;

}  // namespace mercer
