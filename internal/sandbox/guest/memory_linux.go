package guest

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"strings"
)

// memoryKills is how many processes the kernel has killed for want of memory in
// this cgroup, from memory.events (v2) or memory.oom_control (v1); 0 where
// neither tells.
func memoryKills() int64 {
	for _, path := range []string{"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"} {
		if n, ok := readCounter(path, "oom_kill"); ok {
			return n
		}
	}
	return 0
}

func readCounter(path, name string) (int64, bool) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
		if key, value, _ := strings.Cut(s.Text(), " "); key == name {
			n, err := strconv.ParseInt(value, 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

// memoryLimit is the cgroup's limit in bytes, 0 when there is none.
func memoryLimit() int64 {
	for _, path := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
		if err != nil || n > 1<<60 { // "max", and v1's page-rounded infinity
			return 0
		}
		return n
	}
	return 0
}
