package main

import (
	"os"
	"os/exec"
	"strconv"
	"time"
)

// The bomb's size: processes that replace themselves all the time, and a tree
// of such as stay. 8 hoppers with one child each and 2⁷ processes are fewer than 300.
const (
	hoppers   = 8
	treeDepth = 7
)

// startBomb makes processes that no walk over a process tree sees at once, for d.
func startBomb(d time.Duration) {
	end := strconv.FormatInt(time.Now().Add(d).UnixMilli(), 10)
	for range hoppers {
		explode("hop", "0", end)
	}
	explode("tree", strconv.Itoa(treeDepth), end)
}

// explode starts one process in a session of its own. It fails when a limit is
// reached, which is what limits are for.
func explode(kind, depth, end string) {
	cmd := exec.Command(os.Args[0], "bomb", kind, depth, end)
	detach(cmd)
	_ = cmd.Start()
}

// bomb is one process of the bomb: kind, depth left, end in milliseconds.
func bomb(args []string) {
	depth, _ := strconv.Atoi(args[1])
	end, _ := strconv.ParseInt(args[2], 10, 64)
	left := time.Until(time.UnixMilli(end))
	if left <= 0 {
		return
	}
	if args[0] == "hop" { // a new process takes over and this one ends
		explode("hop", "0", args[2])
		return
	}
	// Each starts one of every smaller depth: 2ⁿ in all.
	for d := range depth {
		explode("tree", strconv.Itoa(d), args[2])
	}
	time.Sleep(left)
}
