"""The table of what a file may name: small objects and machines, each with a fact for each of its fields.

`files.forms`, `files.features`, `files.machines` and `files.twins` fill it. Reading makes the classes of this
table with fields that passed their facts; a file cannot name any other class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, is_dataclass
from functools import partial
from types import MethodType
from typing import Any, TypeAlias

Fields: TypeAlias = dict[str, Any]
# An object of one of the classes of the table.
Thing: TypeAlias = Any


@dataclass(frozen=True)
class Form:
    """A small object: its name in files, its class, and its fields with their facts.

    Sizes are shared with the machine that holds it unless they are its `own`. `groups` are further names by
    which facts call it. Where fields are no attributes, `take` gives them, and `make` makes the object.
    `later` has the values of fields that files of an earlier version do not have.
    """

    name: str
    kind: type
    facts: dict[str, str]
    own: bool = False
    groups: tuple[str, ...] = ()
    take: Callable[[Thing], Fields] | None = None
    make: Callable[[Fields], Thing] | None = None
    later: Fields = field(default_factory=dict)

    def has(self, names: Iterable[str]) -> bool:
        """Whether fields with these names are all that the form needs, and none besides."""
        found = set(names)
        return found <= self.facts.keys() and self.facts.keys() - found <= self.later.keys()

    def fields_of(self, thing: Thing) -> Fields:
        if self.take is not None:
            return self.take(thing)
        return {name: getattr(thing, name) for name in self.facts}

    def made_of(self, known: Fields) -> Thing:
        fields = {**self.later, **known}
        if self.make is not None:
            return self.make(fields)
        if is_dataclass(self.kind):
            return self.kind(**fields)
        thing: Thing = object.__new__(self.kind)
        thing.__dict__.update(fields)
        return thing


@dataclass(frozen=True)
class MachineForm:
    """A machine: its name in files, its class, and what a fit may have left in it, with facts.

    `check` refuses parameters that it does not take; `complete` makes what a file leaves out because it
    follows from the rest.
    """

    name: str
    kind: type
    facts: dict[str, str]
    check: Callable[[Thing], None]
    complete: Callable[[Thing], None] | None = None


class Registry:
    """Forms by name and by class."""

    def __init__(self) -> None:
        self.forms: dict[str, Form] = {}
        self.machines: dict[str, MachineForm] = {}
        self._form_of: dict[object, Form] = {}
        self._machine_of: dict[type, MachineForm] = {}

    def add_form(self, form: Form, key: object = None) -> None:
        """`key` is the function behind a form of functions; else the class tells a form."""
        assert form.name not in self.forms
        self.forms[form.name] = form
        self._form_of[form.kind if key is None else key] = form

    def add_machine(self, form: MachineForm) -> None:
        assert form.name not in self.machines
        self.machines[form.name] = form
        self._machine_of[form.kind] = form

    def form_of(self, value: Thing) -> Form | None:
        """The form of a value, by its class; of a function, by what it is a part or a method of."""
        if isinstance(value, partial):
            return self._form_of.get(value.func)
        if isinstance(value, MethodType):
            return self._form_of.get(value.__func__.__name__)
        return self._form_of.get(type(value))

    def machine_of(self, value: Thing) -> MachineForm | None:
        return self._machine_of.get(type(value))

    def fits(self, value: Thing, name: str) -> bool:
        """Whether a value is of the form, or of a form of the group, with this name."""
        if name == "machine":
            return self.machine_of(value) is not None
        form = self.form_of(value)
        return form is not None and (name == form.name or name in form.groups)


REGISTRY = Registry()
