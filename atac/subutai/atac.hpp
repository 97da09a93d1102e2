/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The classes of Tables 4.2, 5.1 and 5.2 of S. J. Park, Analyzing Performance and Usability of Broadcast-Based
 * Inter-Core Communication (ATAC) on Manycore Architecture, MIT, 2013, with the thesis's names, in C++14. Each member
 * function is the C function of its name: <subutai/atac.h> says what it does, what it refuses, and whether it blocks.
 * All is in this header; link with -lsubutai-atac.
 *
 *   using namespace subutai::atac;
 *   BarrierMaster *bm;
 *   run({.number_of_cores = 16}, [] { bm = new BarrierMaster(16); }, [] {
 *       std::unique_ptr<Barrier> barrier(bm->generate_barrier());
 *       ready();
 *       barrier->wait();
 *   });
 *
 * Errors. Constructors, generate_barrier, generateLocalWorkPile and Barrier::wait throw std::system_error with the C
 * function's errno; create returns a null pointer and sets errno, and the thesis's bools are false with errno set. A run
 * that fails throws std::runtime_error out of run(), with what ATAC_run returns. An exception must not leave a thread's
 * body: std::terminate would end the program. One that leaves prepare leaves run() too. Live threads of a run that fails
 * end in a call, by unwinding: a catch (...) around a call must throw again, and destructors must not call this
 * interface, or the program ends.
 *
 * Ownership. What create, new, generate_barrier and generateLocalWorkPile return is the caller's to delete; a port or
 * barrier or pile before what it was made from. Objects are not copied.
 *
 * The C functions are declared in subutai::atac::c, so that their types do not hide the classes: include this header in
 * the place of atac.h, not behind it.
 */
#ifndef SUBUTAI_ATAC_HPP
#define SUBUTAI_ATAC_HPP

#ifdef SUBUTAI_ATAC_H
#error "<subutai/atac.hpp> takes the place of <subutai/atac.h>: include only one of them"
#endif

#include <cerrno>
#include <functional>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <stdbool.h>

namespace subutai {
namespace atac {

namespace c {
#include "atac.h"
}

using c::Message;

/* match_operation of set_local_filter; bytes of data in a message at most. */
constexpr int AND = c::ATAC_AND, OR = c::ATAC_OR, XOR = c::ATAC_XOR;
constexpr int MAX_BYTES = c::ATAC_MAX_BYTES;

namespace inside {
template <typename T> T *need(T *made, const char *what) {
    if (made == nullptr)
        throw std::system_error(errno, std::generic_category(), what);
    return made;
}

/* Not copied: each object has one of C's. */
class Only {
  protected:
    Only() = default;
    ~Only() = default;

  public:
    Only(const Only &) = delete;
    Only &operator=(const Only &) = delete;
};
} // namespace inside

/* ---- runs ---- */

/* c::ATAC_options with its defaults. Designated initializers, in C++20, name what is to be another. */
struct Options {
    int number_of_cores = 64;
    int number_of_threads = 0;
    bool live = false;
    int time_scale = -1;
    int channels = 64;
    int transport_cycles = 5, controller_cycles = 10, check_cycles = 3, software_cycles = 300;
    int lambda_limit = 0, buffer_limit = 0;
    int stack_bytes = 262144;
};

/* prepare may be empty. Cycles until the last thread has ended. Blocks until then. Throws std::runtime_error. */
inline unsigned long long run(const Options &o, std::function<void()> prepare, std::function<void()> body) {
    struct Both {
        std::function<void()> prepare, body;
    } both = {std::move(prepare), std::move(body)};
    c::ATAC_options options = c::ATAC_options_default();
    options.number_of_cores = o.number_of_cores;
    options.number_of_threads = o.number_of_threads;
    options.live = o.live;
    options.time_scale = o.time_scale;
    options.channels = o.channels;
    options.transport_cycles = o.transport_cycles;
    options.controller_cycles = o.controller_cycles;
    options.check_cycles = o.check_cycles;
    options.software_cycles = o.software_cycles;
    options.lambda_limit = o.lambda_limit;
    options.buffer_limit = o.buffer_limit;
    options.stack_bytes = o.stack_bytes;
    unsigned long long cycles = 0;
    const char *error = c::ATAC_run(
        &options,
        [](void *argument) {
            const auto &prepares = static_cast<Both *>(argument)->prepare;
            if (prepares)
                prepares();
        },
        [](void *argument) { static_cast<Both *>(argument)->body(); }, &both, &cycles);
    if (error != nullptr)
        throw std::runtime_error(error);
    return cycles;
}

/* The calling thread's number; -1: it is none of a run. The time. Work of so many cycles. */
inline int self() {
    return c::ATAC_self();
}
inline unsigned long long cycles() {
    return c::ATAC_cycles();
}
/* Blocks until all threads of the run are here: their ports and barriers are there behind it. */
inline void ready() {
    c::ATAC_ready();
}
inline void compute(unsigned long long n_cycles) {
    c::ATAC_compute(n_cycles);
}

/* ---- Table 4.2 ---- */

class VirtualChannel : inside::Only {
  public:
    /* Null: there is no further channel (ENOSPC), or no memory, or no run (EPERM). */
    static VirtualChannel *create() {
        c::VirtualChannel *made = c::VirtualChannel_create();
        return made != nullptr ? new VirtualChannel(made) : nullptr;
    }
    ~VirtualChannel() {
        c::VirtualChannel_delete(channel);
    }

  private:
    friend class VirtualChannelPort;
    explicit VirtualChannel(c::VirtualChannel *made) : channel(made) {}
    c::VirtualChannel *channel;
};

class VirtualChannelPort : inside::Only {
  public:
    explicit VirtualChannelPort(VirtualChannel *vc)
        : port(inside::need(c::VirtualChannelPort_new(vc->channel), "VirtualChannelPort")) {}
    ~VirtualChannelPort() {
        c::VirtualChannelPort_delete(port);
    }
    bool send_message(int payload, int message_signature, int tag) {
        return c::VirtualChannelPort_send_message(port, payload, message_signature, tag);
    }
    bool send_message_long(const char *data, int data_size, int message_signature, int tag) {
        return c::VirtualChannelPort_send_message_long(port, data, data_size, message_signature, tag);
    }
    bool receive_message(Message &msg_buffer) {
        return c::VirtualChannelPort_receive_message(port, &msg_buffer);
    }
    bool receive_message_long(Message &msg_buffer, char *data_buffer, int data_size) {
        return c::VirtualChannelPort_receive_message_long(port, &msg_buffer, data_buffer, data_size);
    }
    bool wait_and_receive_message(Message &msg_buffer) {
        return c::VirtualChannelPort_wait_and_receive_message(port, &msg_buffer);
    }
    bool wait_and_receive_message_long(Message &msg_buffer, char *data_buffer, int data_size) {
        return c::VirtualChannelPort_wait_and_receive_message_long(port, &msg_buffer, data_buffer, data_size);
    }
    bool set_local_filter(int mask, int match_operation, int signature) {
        return c::VirtualChannelPort_set_local_filter(port, mask, match_operation, signature);
    }

  private:
    c::VirtualChannelPort *port;
};

/* ---- Table 5.1 ---- */

class Barrier : inside::Only {
  public:
    ~Barrier() {
        c::Barrier_delete(barrier);
    }
    /* Throws if another thread has generated it. */
    void wait() {
        if (!c::Barrier_wait(barrier))
            throw std::system_error(errno, std::generic_category(), "Barrier::wait");
    }

  private:
    friend class BarrierMaster;
    explicit Barrier(c::Barrier *made) : barrier(made) {}
    c::Barrier *barrier;
};

class BarrierMaster : inside::Only {
  public:
    explicit BarrierMaster(int number_of_threads)
        : master(inside::need(c::BarrierMaster_new(number_of_threads), "BarrierMaster")) {}
    ~BarrierMaster() {
        c::BarrierMaster_delete(master);
    }
    Barrier *generate_barrier() {
        return new Barrier(inside::need(c::BarrierMaster_generate_barrier(master), "generate_barrier"));
    }

  private:
    c::BarrierMaster *master;
};

/* ---- Table 5.2 ---- */

class IWorkTask : inside::Only {
  public:
    IWorkTask() : task{{&call}, this} {}
    virtual ~IWorkTask() = default;
    /* By the thread that has got the task. */
    virtual void run() = 0;

  private:
    friend class DWorkPile;
    /* What the piles have. */
    struct Task {
        c::IWorkTask base;
        IWorkTask *own;
    } task;
    static IWorkTask *of(c::IWorkTask *base) {
        return base != nullptr ? reinterpret_cast<Task *>(base)->own : nullptr;
    }
    static void call(c::IWorkTask *base) {
        of(base)->run();
    }
};

/* Virtual, as in the thesis: each system of DWorkPileMaster makes its own. */
class DWorkPile : inside::Only {
  public:
    virtual ~DWorkPile() {
        c::DWorkPile_delete(pile);
    }
    virtual IWorkTask *get() {
        return IWorkTask::of(c::DWorkPile_get(pile));
    }
    /* The task stays the caller's, and must live until it has been run. */
    virtual void put(IWorkTask *task_to_push) {
        c::DWorkPile_put(pile, task_to_push != nullptr ? &task_to_push->task.base : nullptr);
    }
    virtual void process_pending_request() {
        c::DWorkPile_process_pending_request(pile);
    }
    virtual void update_filter() {
        c::DWorkPile_update_filter(pile);
    }
    virtual void finish(int num_threads) {
        c::DWorkPile_finish(pile, num_threads);
    }

  private:
    friend class DWorkPileMaster;
    explicit DWorkPile(c::DWorkPile *made) : pile(made) {}
    c::DWorkPile *pile;
};

class DWorkPileMaster : inside::Only {
  public:
    virtual ~DWorkPileMaster() {
        c::DWorkPileMaster_delete(master);
    }
    virtual DWorkPile *generateLocalWorkPile() {
        return new DWorkPile(inside::need(c::DWorkPileMaster_generateLocalWorkPile(master), "generateLocalWorkPile"));
    }

  protected:
    DWorkPileMaster(int kind, int number_of_threads, int capacity)
        : master(inside::need(c::DWorkPileMaster_new(kind, number_of_threads, capacity), "DWorkPileMaster")) {}

  private:
    c::DWorkPileMaster *master;
};

/* capacity: tasks in one queue, 1 to 65536. */
class VCDequePileMaster : public DWorkPileMaster {
  public:
    VCDequePileMaster(int number_of_threads, int capacity)
        : DWorkPileMaster(c::ATAC_VC_DEQUE, number_of_threads, capacity) {}
};
class VCCasPileMaster : public DWorkPileMaster {
  public:
    VCCasPileMaster(int number_of_threads, int capacity)
        : DWorkPileMaster(c::ATAC_VC_CAS, number_of_threads, capacity) {}
};
class GlobalQueuePileMaster : public DWorkPileMaster {
  public:
    GlobalQueuePileMaster(int number_of_threads, int capacity)
        : DWorkPileMaster(c::ATAC_GLOBAL_QUEUE, number_of_threads, capacity) {}
};
class CilkPileMaster : public DWorkPileMaster {
  public:
    CilkPileMaster(int number_of_threads, int capacity)
        : DWorkPileMaster(c::ATAC_CILK, number_of_threads, capacity) {}
};

} // namespace atac
} // namespace subutai

#endif
