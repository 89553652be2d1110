//go:build unix

package terminal

import (
	"os"
	"os/signal"
	"syscall"
)

// onResize calls f after each change of the terminal's size, until stop.
func onResize(f func()) (stop func()) {
	changes, quit, done := make(chan os.Signal, 1), make(chan struct{}), make(chan struct{})
	signal.Notify(changes, syscall.SIGWINCH)
	go func() {
		defer close(done)
		for {
			select {
			case <-changes:
				f()
			case <-quit:
				return
			}
		}
	}()
	return func() {
		signal.Stop(changes)
		close(quit)
		<-done
	}
}
