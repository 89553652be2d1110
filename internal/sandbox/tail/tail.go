// Package tail keeps the end of a stream of diagnostics.
package tail

import (
	"strings"
	"sync"
)

// Size is how much is kept, in bytes.
const Size = 4 << 10

// Buffer is an io.Writer that keeps the last Size bytes. The zero value is
// ready; it may be used from several goroutines.
type Buffer struct {
	mu  sync.Mutex
	buf []byte
}

// Write never fails.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.buf = append(b.buf, p...)
	if over := len(b.buf) - Size; over > 0 {
		b.buf = append(b.buf[:0], b.buf[over:]...)
	}
	return len(p), nil
}

// String is the tail, trimmed.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(string(b.buf), "?"))
}
