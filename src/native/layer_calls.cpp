// Calls of a layer's kernel with torch's tensors, where nothing has changed since the last one: in Python the
// checks that decide so take longer than a small product, and longer still after a large one, which leaves
// nothing of Python in the caches. Tensors are read through DLPack's table of functions and all else through
// Python's interface, so that no build depends on torch's headers.
#ifndef SPARSACT_ISA

#include <array>

#include "bind.hpp"

namespace sparsact {

namespace {

// DLPack's interface in C, as far as it is read here.
struct DLTensor {
    unsigned char* data;
    std::int32_t device_type, device_id, ndim;
    std::uint32_t dtype;  // code, bits and lanes, from the lowest byte on
    std::int64_t *shape, *strides;
    std::uint64_t byte_offset;

    std::int64_t address() const { return reinterpret_cast<std::int64_t>(data + byte_offset); }
};

struct DLPackExchange {
    std::uint32_t major, minor;
    void *older, *allocator, *from_object, *to_object;
    int (*look)(void* object, DLTensor* out);  // else with an exception of Python
};

constexpr int MOST_AXES = 8;  // of an input that is taken at once
constexpr std::int32_t CPU = 1;
constexpr std::uint32_t FLOAT32 = 2 | 32 << 8 | 1 << 16;

nb::object of(nb::handle object, nb::handle name) {
    PyObject* found = PyObject_GetAttr(object.ptr(), name.ptr());
    if (!found) throw nb::python_error();
    return nb::steal(found);
}

std::int64_t number(nb::handle object) {
    const long long value = PyLong_AsLongLong(object.ptr());
    if (value == -1 && PyErr_Occurred()) throw nb::python_error();
    return value;
}

nb::object name(const char* text) { return nb::steal(PyUnicode_InternFromString(text)); }

// Objects of torch and names, looked up once and never freed.
struct Torch {
    nb::module_ torch = nb::module_::import_("torch"), c = nb::module_::import_("torch._C");
    nb::module_ forward_ad = nb::module_::import_("torch.autograd.forward_ad");
    nb::module_ all = nb::module_::import_("torch.nn.modules.module");
    nb::object tensor = torch.attr("Tensor"), is_grad_enabled = torch.attr("is_grad_enabled");
    nb::object get_num_threads = torch.attr("get_num_threads");
    nb::object modes[5] = {c.attr("_get_tracing_state"), c.attr("_len_torch_dispatch_stack"),
                           c.attr("_len_torch_function_stack"), c.attr("_are_functorch_transforms_active"),
                           c.attr("_is_any_autocast_enabled")};
    nb::object hooks[2] = {all.attr("_global_forward_hooks"), all.attr("_global_forward_pre_hooks")};
    nb::object level = name("_current_level"), parameters = name("_parameters"), weight = name("weight");
    nb::object bias = name("bias"), training = name("training"), version = name("_version");
    nb::object requires_grad = name("requires_grad"), new_empty = name("new_empty");
    nb::object hooks_before = name("_forward_pre_hooks"), hooks_after = name("_forward_hooks");
    nb::object modules = name("_modules"), steps = name("optimizer_steps");
    nb::object write_counts = name("write_counts");
    const DLPackExchange* exchange = static_cast<const DLPackExchange*>(
        PyCapsule_GetPointer(tensor.attr("__dlpack_c_exchange_api__").ptr(), "dlpack_exchange_api"));

    static const Torch& get() {
        static const Torch* found = new Torch;
        return *found;
    }

    bool look(nb::handle one, DLTensor& seen) const {
        if (exchange->major != 1 || !exchange->look) return false;  // of another interface: nothing is known
        if (exchange->look(one.ptr(), &seen) == 0) return seen.device_type == CPU;
        PyErr_Clear();
        return false;
    }

    // Whether torch records, transforms or casts operations, or Python code sees them.
    bool watches() const {
        for (const nb::object& mode : modes) {
            const nb::object active = mode();
            if (!active.is_none() && PyObject_IsTrue(active.ptr()) != 0) return true;
        }
        return number(of(forward_ad, level)) >= 0;
    }
};

// A parameter, or None, where it lies and how often torch saw it written to.
class Held {
  public:
    Held(const Torch& torch, nb::handle layer, nb::handle name)
        : parameter_(nb::borrow(in(torch, layer, name))), facts_(facts(torch)) {}

    bool is_in(const Torch& torch, nb::handle layer, nb::handle name) const {
        return in(torch, layer, name).is(parameter_) && facts(torch) == facts_;
    }
    bool requires_grad(const Torch& torch) const {
        return !parameter_.is_none() && of(parameter_, torch.requires_grad).is(Py_True);
    }
    std::uint32_t dtype() const { return static_cast<std::uint32_t>(facts_[1]); }

  private:
    static nb::handle in(const Torch& torch, nb::handle layer, nb::handle name) {
        PyObject* found = PyDict_GetItem(of(layer, torch.parameters).ptr(), name.ptr());
        return found ? found : Py_None;
    }

    std::array<std::int64_t, 7> facts(const Torch& torch) const {
        std::array<std::int64_t, 7> found{};
        DLTensor seen;
        if (parameter_.is_none() || !torch.look(parameter_, seen)) return found;
        found = {seen.address(), seen.dtype, number(of(parameter_, torch.version))};
        for (int axis = 0; axis < seen.ndim && axis < 2; ++axis) {
            found[3 + 2 * axis] = seen.shape[axis];
            found[4 + 2 * axis] = seen.strides[axis];
        }
        return found;
    }

    nb::object parameter_;
    std::array<std::int64_t, 7> facts_;
};

}  // namespace

// A layer's call, for weights that are as they were when this was made. None where they may not be, or where
// the input is unusual: the layer then asks in full.
class LayerCall {
  public:
    // `kernel(x, rows, out, threads)` fills `out`, at addresses. It also takes, and returns, how many units
    // may be on and are, if `most` of a row is not negative. `stripe()` says whether a part of the weights is
    // what it was, None that none is read. `version` counts steps of optimisers, and is None for weights that
    // nothing can write to.
    LayerCall(nb::object kernel, nb::handle layer, nb::object version, nb::object stripe, std::int64_t inputs,
              std::int64_t outputs, std::int64_t max_rows, double most)
        : torch_(Torch::get()),
          kernel_(std::move(kernel)),
          version_(std::move(version)),
          stripe_(std::move(stripe)),
          weight_(torch_, layer, torch_.weight),
          bias_(torch_, layer, torch_.bias),
          steps_(steps()),
          inputs_(inputs),
          outputs_(outputs),
          max_rows_(max_rows),
          most_(most),
          dtype_(most < 0 ? FLOAT32 : weight_.dtype()) {}

    // Whether the weights are what they were, as far as torch counts writes to them.
    bool holds(nb::handle layer) const {
        return weight_.is_in(torch_, layer, torch_.weight) && bias_.is_in(torch_, layer, torch_.bias) &&
               steps() == steps_;
    }

    // `watched`: (parent, name, module) of each module that receives left-out values; None without any.
    nb::object operator()(nb::handle layer, nb::handle x, nb::handle watched) const {
        DLTensor seen;
        if (!x.type().is(torch_.tensor) || of(layer, torch_.training).is(Py_True) || torch_.watches() ||
            !torch_.look(x, seen) || seen.dtype != dtype_ || !holds(layer) || is_recorded(x) ||
            (!watched.is_none() && is_seen(layer, watched)) || !has_stripe())
            return nb::none();
        const std::int64_t rows = contiguous_rows(seen);
        if (rows < 1 || rows > max_rows_) return nb::none();
        const nb::object out = new_output(x, seen);
        DLTensor filled;
        if (!torch_.look(out, filled)) return nb::none();
        const nb::object threads = torch_.get_num_threads();
        if (most_ < 0) {
            kernel_(seen.address(), rows, filled.address(), threads);
            return out;
        }
        const auto most = static_cast<std::int64_t>(most_ * static_cast<double>(rows));
        const nb::object on = kernel_(seen.address(), rows, filled.address(), threads, most);
        return number(on) <= most ? out : nb::none();
    }

  private:
    std::int64_t steps() const { return version_.is_none() ? 0 : number(of(version_, torch_.steps)); }

    // x.new_empty(..., outputs); quicker than by nanobind.
    nb::object new_output(nb::handle x, const DLTensor& seen) const {
        PyObject* given[MOST_AXES + 1] = {x.ptr()};
        nb::object sizes[MOST_AXES];
        for (int axis = 0; axis < seen.ndim; ++axis) {
            sizes[axis] = nb::int_(axis + 1 < seen.ndim ? seen.shape[axis] : outputs_);
            given[axis + 1] = sizes[axis].ptr();
        }
        const auto count = static_cast<std::size_t>(seen.ndim) + 1;
        PyObject* out = PyObject_VectorcallMethod(torch_.new_empty.ptr(), given, count, nullptr);
        if (!out) throw nb::python_error();
        return nb::steal(out);
    }

    // Whether a part of the weights is what it was. If not, the version remembers it: the next check reads
    // another part.
    bool has_stripe() const {
        if (stripe_.is_none() || stripe_().is(Py_True)) return true;
        nb::setattr(version_, torch_.write_counts, nb::none());
        return false;
    }

    bool is_recorded(nb::handle x) const {
        return torch_.is_grad_enabled().is(Py_True) &&
               (of(x, torch_.requires_grad).is(Py_True) || weight_.requires_grad(torch_) ||
                bias_.requires_grad(torch_));
    }

    // Whether hooks see what the layer leaves out, or another module receives it, or one in training mode.
    bool is_seen(nb::handle layer, nb::handle watched) const {
        for (const nb::object& hooks : torch_.hooks)
            if (PyDict_Size(hooks.ptr()) != 0) return true;
        if (has_hooks(layer)) return true;
        for (const nb::handle one : watched) {
            const nb::handle parent = PyTuple_GetItem(one.ptr(), 0), module = PyTuple_GetItem(one.ptr(), 2);
            PyObject* now = PyDict_GetItem(of(parent, torch_.modules).ptr(), PyTuple_GetItem(one.ptr(), 1));
            const bool trains = of(module, torch_.training).is(Py_True);  // as a dropout may alone
            if (now != module.ptr() || trains || has_hooks(module)) return true;
        }
        return false;
    }

    bool has_hooks(nb::handle module) const {
        return PyDict_Size(of(module, torch_.hooks_before).ptr()) != 0 ||
               PyDict_Size(of(module, torch_.hooks_after).ptr()) != 0;
    }

    // Number of rows of inputs if they are contiguous and have the right length, else 0.
    std::int64_t contiguous_rows(const DLTensor& x) const {
        if (x.ndim < 1 || x.ndim > MOST_AXES || x.shape[x.ndim - 1] != inputs_) return 0;
        std::int64_t step = 1, rows = 1;
        for (int axis = x.ndim - 1; axis >= 0; --axis) {
            if (x.shape[axis] != 1 && x.strides[axis] != step) return 0;
            step *= x.shape[axis];
            if (axis + 1 < x.ndim) rows *= x.shape[axis];
        }
        return rows;
    }

    const Torch& torch_;
    nb::object kernel_, version_, stripe_;
    Held weight_, bias_;
    std::int64_t steps_, inputs_, outputs_, max_rows_;
    double most_;
    std::uint32_t dtype_;
};

SPARSACT_BINDINGS(module) {
    nb::class_<LayerCall>(module, "LayerCall")
        .def(nb::init<nb::object, nb::handle, nb::object, nb::object, std::int64_t, std::int64_t,
                      std::int64_t, double>(),
             nb::arg("kernel"), nb::arg("layer"), nb::arg("version").none(), nb::arg("stripe").none(),
             nb::arg("inputs"), nb::arg("outputs"), nb::arg("max_rows"), nb::arg("most"))
        .def("holds", &LayerCall::holds)
        .def("__call__", &LayerCall::operator(), nb::arg("layer"), nb::arg("x"), nb::arg("watched").none());
}

}  // namespace sparsact

#endif
