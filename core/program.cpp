// Checking of programs: arities, indices, stack.
#include "program.hpp"

#include <algorithm>
#include <stdexcept>

namespace mercer {
namespace {

enum Kind { Primitive, Constant, Unary, Binary };
constexpr size_t operands(Kind kind) {
    if (kind == Binary) return 2;
    return kind == Unary ? 1 : 0;
}
enum Arg { None, View, Column, Param, ParamRange, Count, Natural, Row, Order };

struct Entry {
    const char* name;
    Kind kind;
    Arg a, b;
};
constexpr Entry kTable[] = {
#define MERCER_ENTRY(name, kind, a, b) {#name, kind, a, b},
    MERCER_OPCODES(MERCER_ENTRY)
#undef MERCER_ENTRY
};
constexpr int64_t kMostSteps = 1000;  // bounds the tape of `contract`

[[noreturn]] void fail(int64_t step, const std::string& what) {
    throw std::invalid_argument("step " + std::to_string(step) + " of the program: " + what);
}

void check_argument(Program& prog, int64_t step, Arg kind, int32_t value, const Op& op) {
    const int64_t p = int64_t(prog.params.size());
    const std::string got = std::string(kTable[op.code].name) + " got " + std::to_string(value);
    if (kind == None) return;
    if (value < 0) fail(step, got + "; indices and counts are not negative");
    switch (kind) {
        case View: prog.views = std::max(prog.views, value == INT32_MAX ? value : value + 1); break;
        case Column: prog.columns = std::max(prog.columns, value == INT32_MAX ? value : value + 1); break;
        case Row: prog.rows = std::max(prog.rows, value == INT32_MAX ? value : value + 1); break;
        case Param:
            if (value >= p) fail(step, got + " for a parameter; there are " + std::to_string(p));
            break;
        case Count:
            if (value < 1 || int64_t(op.a) + value > p)
                fail(step, got + " coefficients from parameter " + std::to_string(op.a) + "; there are " +
                               std::to_string(p) + " parameters and at least one is needed");
            break;
        case Order:
            if (value > 2) fail(step, got + " for an order; 0, 1 and 2 are known");
            break;
        case None:
        case ParamRange:
        case Natural: break;
    }
}

}  // namespace

const char* opcode_name(int32_t code) { return kTable[code].name; }

Program make_program(const int32_t* code, int64_t k, const double* params, int64_t p) {
    if (k < 1) throw std::invalid_argument("a program needs at least one step");
    if (k > kMostSteps)
        throw std::invalid_argument("a program has at most 1000 steps; this one has " + std::to_string(k));
    Program prog;
    prog.params.assign(params, params + p);
    std::vector<int32_t> stack;
    for (int64_t i = 0; i < k; ++i) {
        Op op{code[3 * i], code[3 * i + 1], code[3 * i + 2], -1, -1, 0, -1, -1, false};
        if (op.code < 0 || op.code >= kOpcodes) fail(i, "no opcode " + std::to_string(op.code));
        const Entry& entry = kTable[op.code];
        check_argument(prog, i, entry.a, op.a, op);
        check_argument(prog, i, entry.b, op.b, op);
        const size_t needs = operands(entry.kind);
        if (stack.size() < needs)
            fail(i, std::string(entry.name) + " needs " + std::to_string(needs) +
                        " values on the stack; there are " + std::to_string(stack.size()));
        if (entry.kind == Binary) {
            op.right = stack.back();
            stack.pop_back();
        }
        if (needs) {
            op.left = stack.back();
            stack.pop_back();
        }
        if (entry.kind == Primitive) {
            op.primitive = op.twin = prog.primitives++;
            for (Op& other : prog.ops)
                if (other.code == op.code && other.a == op.a && (op.code != PERIODIC || other.b == op.b)) {
                    op.twin = other.twin;
                    op.shared = other.shared = true;
                }
        }
        op.depth = int32_t(stack.size());
        stack.push_back(int32_t(i));
        prog.depth = std::max(prog.depth, int32_t(stack.size()));
        prog.ops.push_back(op);
    }
    if (stack.size() != 1)
        throw std::invalid_argument("the program leaves " + std::to_string(stack.size()) +
                                    " values on the stack; exactly one is the kernel's value");
    return prog;
}

}  // namespace mercer
