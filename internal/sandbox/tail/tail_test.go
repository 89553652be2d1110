package tail

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTail(t *testing.T) {
	var b Buffer
	require.Empty(t, b.String())
	_, _ = b.Write([]byte("  line\n"))
	require.Equal(t, "line", b.String())
	n, err := b.Write([]byte(strings.Repeat("x", 3*Size) + "end"))
	require.NoError(t, err)
	require.Equal(t, 3*Size+3, n)
	require.Len(t, b.String(), Size)
	require.True(t, strings.HasSuffix(b.String(), "xend"))
	for range 2 * Size {
		_, _ = b.Write([]byte("\xe9"))
	}
	require.Equal(t, "?", b.String(), "bytes that are no text")
	require.LessOrEqual(t, len(b.buf), Size)
}

func TestTailOfManyWriters(t *testing.T) {
	var b Buffer
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				_, _ = b.Write([]byte("abcd"))
				_ = b.String()
			}
		})
	}
	all.Wait()
	require.Len(t, b.String(), Size)
}
