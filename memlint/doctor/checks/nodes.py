"""NUMA nodes: where this process runs, and where its GPUs and network cards sit."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from memlint.doctor.cpu_list import list_text
from memlint.doctor.facts.devices import Gpu
from memlint.doctor.facts.nodes import Node
from memlint.doctor.facts.torch_build import TorchBuild
from memlint.doctor.lines import Line, attention, bad, good, unknown
from memlint.doctor.machine import Machine
from memlint.doctor.unknown import Unknown


def numa(machine: Machine) -> Line:
    """Where this process may run and have its memory.

    https://docs.kernel.org/admin-guide/mm/numa_memory_policy.html: memory is taken from the
    node of the CPU that first touches it, where the node has some free.
    https://docs.pytorch.org/docs/main/elastic/numa.html: to bind processes gains 1 to 10 %
    typically, for some workloads much more or nothing.
    """
    nodes = machine.nodes
    if isinstance(nodes, Unknown):
        return unknown("NUMA", nodes)
    if len(nodes) == 1:
        return good("NUMA", "one node: no memory is far")
    here = nodes_of_process(machine)
    if isinstance(here, Unknown):
        return unknown("NUMA", here)
    everywhere = list_text([node.number for node in nodes])
    all_nodes = f" of {everywhere}" if list_text(here) != everywhere else ""
    all_nodes += _without_cpus(nodes)
    if len(here) > 1:
        return attention(
            "NUMA",
            f"this process may run on nodes {list_text(here)}{all_nodes}: threads that "
            "move away from their memory wait longer for it (binding typically gains 1-10 %)",
            _binding(machine, min(here)),
        )
    memory = machine.cpus.allowed_nodes
    if not isinstance(memory, Unknown) and memory.isdisjoint(here):
        return bad(
            "NUMA",
            f"this process runs on node {list_text(here)}, and all its memory comes from "
            f"node {list_text(memory)}: every access crosses the link between them",
            _nearer(machine, nodes, memory, here),
        )
    return good("NUMA", f"this process runs on node {list_text(here)}{all_nodes}")


def _nearer(
    machine: Machine, nodes: Iterable[Node], memory: Collection[int], here: Collection[int]
) -> str:
    if machine.shared.container:
        return f"docker run --cpuset-mems={list_text(here)} ..."
    cpus = {
        cpu
        for node in nodes
        if node.number in memory and not isinstance(node.cpus, Unknown)
        for cpu in node.cpus
    }
    return f"taskset --cpu-list {list_text(cpus)} python train.py"


def nodes_of_process(machine: Machine) -> frozenset[int] | Unknown:
    """The nodes on whose CPUs this process may run."""
    if isinstance(machine.nodes, Unknown):
        return machine.nodes
    allowed = machine.cpus.allowed
    if isinstance(allowed, Unknown):
        return allowed
    found: set[int] = set()
    for node in machine.nodes:
        if isinstance(node.cpus, Unknown):
            return node.cpus
        if node.cpus & allowed:
            found.add(node.number)
    return frozenset(found) or Unknown("the CPUs of this process belong to no node")


def _without_cpus(nodes: Iterable[Node]) -> str:
    bare = [node.number for node in nodes if node.cpus == frozenset()]
    if not bare:
        return ""
    return f" (no CPUs at {list_text(bare)})"


def _binding(machine: Machine, node: int) -> str:
    gpus = machine.devices.gpus
    fed = 0 if isinstance(gpus, Unknown) else sum(gpu.vendor != "Intel" for gpu in gpus)
    if fed > 1 and _launcher_binds(machine.torch):
        return f"torchrun --numa-binding=node --nproc-per-node={fed} train.py"
    return f"numactl --cpunodebind={node} --membind={node} python train.py"


def _launcher_binds(torch: TorchBuild | Unknown) -> bool:
    """Whether torchrun can bind: since PyTorch 2.9."""
    if isinstance(torch, Unknown):
        return True
    match = re.match(r"([0-9]{1,3})\.([0-9]{1,3})", torch.version)
    return match is None or (int(match[1]), int(match[2])) >= (2, 9)


def zone_reclaim(machine: Machine) -> Line | None:
    """What the kernel does when a node is full.

    https://docs.kernel.org/admin-guide/sysctl/vm.html#zone-reclaim-mode: disabled by default,
    and best left so where file data should stay cached.
    """
    mode = machine.memory.zone_reclaim
    if isinstance(machine.nodes, Unknown) or len(machine.nodes) == 1:
        return None
    if isinstance(mode, Unknown) or mode == 0:
        return None
    return attention(
        "zone reclaim",
        f"mode {mode}: a node that is full drops cached files (the data set) before memory of "
        "another node is used",
        "sudo sysctl vm.zone_reclaim_mode=0",
    )


def gpus(machine: Machine) -> Line:
    """The GPUs, and whether this process runs at their node.

    https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-bus-pci (``numa_node``), and
    PyTorch's page on NUMA binding: a process should run near the GPU that it feeds.
    """
    found = machine.devices.gpus
    named = machine.devices.by_driver
    if not isinstance(named, Unknown) and named:
        return good("GPUs", ", ".join(named))
    if not found and machine.devices.paravirtual:
        return good("GPUs", "those of Windows, through /dev/dxg")
    if isinstance(found, Unknown):
        return unknown("GPUs", named if isinstance(named, Unknown) else found)
    if not found:
        return good("GPUs", "none on the PCI bus")
    shown = _gpu_text(found)
    if any(gpu.vendor == "NVIDIA" for gpu in found) and _is_absent(machine.devices.driver):
        return attention(
            "GPUs",
            f"{shown}: NVIDIA's driver is not loaded, CUDA cannot use them",
            "sudo modprobe nvidia",
        )
    if isinstance(machine.nodes, Unknown) or len(machine.nodes) == 1:
        return good("GPUs", shown)
    return _gpus_at_nodes(machine, found, shown)


def _is_absent(fact: object) -> bool:
    return isinstance(fact, Unknown) and fact.absent


def _gpus_at_nodes(machine: Machine, found: Collection[Gpu], shown: str) -> Line:
    at = [gpu.node for gpu in found]
    lost = [number for number, node in enumerate(at) if not isinstance(node, int)]
    if lost:
        return attention(
            "GPUs",
            f"{shown}: the firmware does not tell the node of GPU {list_text(lost)}, so that no "
            "launcher can run its process nearby",
            "nvidia-smi topo -m",
        )
    places = {node for node in at if isinstance(node, int)}
    text = f"{shown}; {_by_node(at, places)}"
    here = nodes_of_process(machine)
    if isinstance(here, Unknown) or len(here) > 1:
        return good("GPUs", text)
    if places.isdisjoint(here):
        near = min(places)
        return bad(
            "GPUs",
            f"{text}: this process runs on node {list_text(here)}, each copy to a GPU crosses "
            "the link between the nodes",
            f"numactl --cpunodebind={near} --membind={near} python train.py",
        )
    near_gpus = [number for number, node in enumerate(at) if node in here]
    if len(near_gpus) < len(at):
        return attention(
            "GPUs",
            f"{text}: this process runs on node {list_text(here)}, copies to the other GPUs "
            "cross the link between the nodes",
            "export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES="
            + ",".join(map(str, near_gpus)),
        )
    return good("GPUs", text)


def _by_node(at: Iterable[object], places: Iterable[int]) -> str:
    numbered = list(enumerate(at))
    return ", ".join(
        f"{list_text([number for number, node in numbered if node == place])} at node {place}"
        for place in sorted(places)
    )


def _gpu_text(found: Iterable[Gpu]) -> str:
    counts: dict[str, int] = {}
    for gpu in found:
        name = f"{gpu.vendor} GPU" if isinstance(gpu.name, Unknown) else gpu.name
        counts[name] = counts.get(name, 0) + 1
    return ", ".join(f"{n} x {name}" if n > 1 else name for name, n in counts.items())


def network(machine: Machine) -> Line | None:
    """Whether the GPUs of each node have a network card there; of use on several nodes only.

    https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-net-gdr-level: a
    GPU reaches a card of its own node without the link between the nodes.
    """
    found, cards, nodes = machine.devices.gpus, machine.devices.cards, machine.nodes
    if isinstance(found, Unknown) or isinstance(cards, Unknown) or isinstance(nodes, Unknown):
        return None
    if len(nodes) == 1 or not found or not cards:
        return None
    at = [card.node for card in cards]
    places = {node for node in at if isinstance(node, int)}
    kind = "RDMA" if any(card.rdma for card in cards) else "no RDMA"
    shown = f"{len(cards)} cards ({kind}); {_by_node(at, places)}" if places else ""
    if not shown:
        return attention("network", "the firmware does not tell the nodes of the network cards")
    far = {gpu.node for gpu in found if isinstance(gpu.node, int)} - places
    if far:
        return attention(
            "network",
            f"{shown}: what GPUs at node {list_text(far)} send to other machines crosses the "
            "link between the nodes",
        )
    return good("network", shown)
