package measure

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ticksPerSecond is the unit of times in /proc on every Linux that Go runs on.
const ticksPerSecond = 100

// process is what /proc says of one.
type process struct {
	parent     int
	own, ended time.Duration // CPU time of its own, and of the children that it has waited for
}

// treeOf is the CPU time and the memory of a process and its descendants.
func treeOf(root int) (cpu time.Duration, memory int64) {
	all := map[int]process{}
	children := map[int][]int{}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(dir + "/stat")
		if err != nil {
			continue // it has ended
		}
		if p, ok := parseStat(string(stat)); ok {
			all[pid] = p
			children[p.parent] = append(children[p.parent], pid)
		}
	}
	for todo := []int{root}; len(todo) > 0; {
		pid := todo[0]
		todo = append(todo[1:], children[pid]...)
		own := all[pid].own // in hundredths of a second
		var exact unix.Timespec
		if unix.ClockGettime(cpuClock(pid), &exact) == nil {
			own = time.Duration(exact.Nano())
		}
		cpu += own + all[pid].ended
		memory += peak(pid)
	}
	return cpu, memory
}

// parseStat reads /proc/PID/stat. The name in brackets may hold anything.
func parseStat(stat string) (process, bool) {
	end := strings.LastIndexByte(stat, ')')
	if end < 0 {
		return process{}, false
	}
	fields := strings.Fields(stat[end+1:]) // from the third on: state, parent, ...
	if len(fields) < 15 {
		return process{}, false
	}
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		return process{}, false
	}
	var times [4]time.Duration // utime, stime, cutime, cstime
	for i, field := range fields[11:15] {
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return process{}, false
		}
		times[i] = time.Duration(ticks) * time.Second / ticksPerSecond
	}
	return process{parent, times[0] + times[1], times[2] + times[3]}, true
}

// cpuClock is the clock of a process's CPU time (clock_getcpuclockid(3)).
func cpuClock(pid int) int32 { return int32(^pid<<3 | 2) }

// peak is the largest resident size that a process had, in bytes.
func peak(pid int) int64 {
	status, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, _ := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			return kib << 10
		}
	}
	return 0
}

func maxResident(state *os.ProcessState) int64 {
	usage, ok := state.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	return usage.Maxrss << 10
}
