package guest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Main is sandbox-init: it serves the front end on stdin and stdout and writes
// its diagnostics to stderr. It returns the exit status: 0 after a regular end,
// 1 after a broken protocol, 2 for a bad command line.
//
//	-home DIR   the private home (default $HOME)
//	-remove     remove the home at the end; fd 3 holds its lock
//	-build V    the build that the welcome names
func Main(args []string) int {
	if err := harden(); err != nil {
		fmt.Fprintln(os.Stderr, "sandbox-init:", err)
		return 1
	}
	flags := flag.NewFlagSet("sandbox-init", flag.ContinueOnError)
	home := flags.String("home", os.Getenv("HOME"), "the private home")
	remove := flags.Bool("remove", false, "remove the home at the end")
	build := flags.String("build", "", "the build that the welcome names")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if !filepath.IsAbs(*home) {
		fmt.Fprintf(os.Stderr, "sandbox-init: home %q is not an absolute path: pass -home or set HOME\n", *home)
		return 2
	}
	unix.CloseOnExec(3) // the lock, where a kernel before 5.11 does not know the next call
	// Commands get nothing that whoever started us left open.
	_ = unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	// An engine may mount the home's tmpfs with the mode of the image's directory.
	if err := os.Chmod(*home, 0o700); err != nil { //nolint:gosec // a directory
		fmt.Fprintln(os.Stderr, "sandbox-init: close the private home to others:", err)
		return 1
	}
	err := serve(polled(os.Stdin), polled(os.Stdout), *home, *build)
	if *remove {
		err = joinRemove(err, *home)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sandbox-init:", err)
		return 1
	}
	return 0
}

// polled is f as a file whose reads and writes wait in the runtime's poller. A
// thread that waits in a system call gives its turn away, and each frame that
// then arrives wakes another one: that was a tenth of a round trip. The pipe's
// end is ours alone, so nobody else meets what it says when it is not ready.
func polled(f *os.File) *os.File {
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	if err != nil || flags&unix.O_NONBLOCK != 0 { // the second: it waits there already
		return f
	}
	if err := unix.SetNonblock(int(f.Fd()), true); err != nil {
		return f
	}
	return os.NewFile(f.Fd(), f.Name())
}

func joinRemove(err error, home string) error {
	if rmErr := RemoveHome(home); rmErr != nil && err == nil {
		return rmErr
	}
	return err
}

// RemoveHome removes a local private home. It gets an unowned name first: a
// removal that is cut short must not leave a login in a home without a lock.
func RemoveHome(home string) error {
	unowned := filepath.Join(filepath.Dir(home), UnownedPrefix+strings.TrimPrefix(filepath.Base(home), UnownedPrefix))
	if home != unowned {
		if err := os.Rename(home, unowned); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the private home: %w", err)
		}
	}
	if err := os.RemoveAll(unowned); err != nil {
		return fmt.Errorf("remove the private home: %w", err)
	}
	return nil
}

// serve runs one session from the hello to the end of everything.
func serve(in io.Reader, out io.Writer, home, build string) error {
	// Every signal is caught: an unhandled one would end a Go PID 1, and an
	// ignored one would be inherited by the commands.
	caught := make(chan os.Signal, 64)
	signal.Notify(caught)
	defer signal.Stop(caught)
	setLibrarySignals(ignored)
	if err := becomeReaper(); err != nil {
		return err
	}
	s := newSession(in, out, home, build)
	ctx, cancel := context.WithCancel(context.Background())
	reaped := make(chan struct{})
	go func() { defer close(reaped); s.procs.reap(ctx) }()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	go s.read()
	err := s.wait(caught, ticker.C)
	s.wind(err)
	cancel()
	<-reaped
	return err
}
