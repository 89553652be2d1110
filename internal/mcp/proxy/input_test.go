package proxy

import (
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestInputWritesInOrderAndCloses(t *testing.T) {
	r, w := io.Pipe()
	in := NewInput(w)
	in.Write([]byte("one\n"))
	in.Write([]byte("two\n"))
	in.Close()
	in.Write([]byte("after the close"))
	assert.Equal(t, 8, in.Queued())
	got := make(chan []byte)
	go func() { b, _ := io.ReadAll(r); got <- b }()
	for range 2 {
		in.Wrote(<-in.Results())
	}
	assert.Equal(t, "one\ntwo\n", string(<-got), "the end of input comes behind what was queued")
	assert.Zero(t, in.Queued())
	in.Wait()
}

func TestInputOfChildThatDoesNotRead(t *testing.T) {
	r, w := io.Pipe()
	in := NewInput(w)
	for range 100 {
		in.Write(make([]byte, 1<<16))
	}
	in.Close()
	assert.Equal(t, 100<<16, in.Queued())
	require.NoError(t, r.Close()) // as destroying the child does
	in.Wait()
}

func TestInputAfterWriteError(t *testing.T) {
	r, w := io.Pipe()
	require.NoError(t, r.Close())
	in := NewInput(w)
	in.Write([]byte("a"))
	in.Write([]byte("b"))
	err := <-in.Results()
	require.ErrorIs(t, err, io.ErrClosedPipe)
	in.Wrote(err)
	assert.Zero(t, in.Queued(), "nothing is kept for a child that does not take it")
	in.Close()
	in.Wait()
}
