// Threads of one call: born with it, joined before it returns.  Nothing outlives a call, so fork is safe.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

namespace mercer {

struct Interrupted : std::exception {
    const char* what() const noexcept override { return "interrupted"; }
};

// Answers whether the user wants to stop.  Only ever called on the thread that made the call.
using Poll = std::function<bool()>;

class Crew {
  public:
    Crew(int threads, const Poll& poll)
        : threads_(threads), poll_(poll), next_poll_(clock::now() + kPeriod) {}

    // Runs body(worker, take) on up to `threads` workers, worker 0 being the caller; take() hands out the
    // tasks 0 .. tasks-1 in order, then -1.  The body calls checkpoint(worker) every few milliseconds.
    //   order   which worker gets which task is left to chance; bodies must not let it show
    // Throws what the first failing worker threw, or Interrupted.
    template <class Body> void run(int64_t tasks, const Body& body) {
        std::atomic<int64_t> counter{0};
        auto take = [&]() -> int64_t {
            int64_t t = counter.fetch_add(1, std::memory_order_relaxed);
            return t < tasks ? t : -1;
        };
        auto guarded = [&](int worker) {
            try {
                body(worker, take);
            } catch (...) {
                std::lock_guard lock(mutex_);
                if (!error_) error_ = std::current_exception();
                stop_ = true;
            }
        };
        const int64_t crew = std::min<int64_t>(threads_, tasks);
        std::vector<std::thread> others;
        others.reserve(size_t(crew));  // so that nothing but starting a thread can fail below
        int finished = 0;
        try {
            for (int w = 1; w < crew; ++w)
                others.emplace_back([&, w] {
                    guarded(w);
                    std::lock_guard lock(mutex_);
                    ++finished;
                    done_.notify_one();
                });
        } catch (const std::system_error&) {
            // The system refuses more threads: those that run suffice.
        }
        guarded(0);
        if (!others.empty()) {
            std::unique_lock lock(mutex_);
            while (finished < int(others.size())) {
                done_.wait_for(lock, kPeriod);
                lock.unlock();  // polling may take the interpreter lock; never hold ours meanwhile
                if (!stop_ && poll_ && poll_()) interrupt();
                lock.lock();
            }
        }
        for (auto& t : others) t.join();
        if (error_) std::rethrow_exception(error_);
        if (interrupted_) throw Interrupted();
    }

    void checkpoint(int worker) {
        if (stop_.load(std::memory_order_relaxed)) throw Interrupted();
        if (worker != 0 || !poll_) return;
        const auto now = clock::now();
        if (now < next_poll_) return;
        next_poll_ = now + kPeriod;
        if (poll_()) {
            interrupt();
            throw Interrupted();
        }
    }

  private:
    using clock = std::chrono::steady_clock;
    static constexpr std::chrono::milliseconds kPeriod{50};
    void interrupt() {
        interrupted_ = true;
        stop_ = true;
    }

    int threads_;
    const Poll& poll_;
    clock::time_point next_poll_;
    std::atomic<bool> stop_{false};
    bool interrupted_ = false;
    std::mutex mutex_;
    std::condition_variable done_;
    std::exception_ptr error_;
};

}  // namespace mercer
