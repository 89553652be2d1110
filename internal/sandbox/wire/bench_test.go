package wire

import (
	"io"
	"net"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// duplex is both ends of a byte stream.
type duplex struct {
	ar, br io.Reader
	aw, bw io.Writer
	close  func()
}

func streams(tb testing.TB) map[string]func() duplex {
	return map[string]func() duplex{
		"net.Pipe": func() duplex {
			a, b := net.Pipe()
			return duplex{a, b, a, b, func() { _, _ = a.Close(), b.Close() }}
		},
		"os.Pipe": func() duplex {
			ar, bw, err := os.Pipe()
			require.NoError(tb, err)
			br, aw, err := os.Pipe()
			require.NoError(tb, err)
			return duplex{ar, br, aw, bw, func() { _, _, _, _ = ar.Close(), bw.Close(), br.Close(), aw.Close() }}
		},
	}
}

func BenchmarkThroughput64KiB(b *testing.B) {
	for name, open := range streams(b) {
		b.Run(name, func(b *testing.B) {
			d := open()
			ca, cb := NewConn(d.ar, d.aw), NewConn(d.br, d.bw)
			out, in := NewOutbox(ca, Stdout), NewInbox(cb, Stdout)
			go func() {
				for {
					f, err := ca.Next()
					if err != nil {
						return
					}
					n, _ := Uint32(f)
					_ = out.Grant(n)
				}
			}()
			go func() {
				for {
					f, err := cb.Next()
					if err != nil || in.Put(f.Payload) != nil {
						return
					}
				}
			}()
			block, buf := make([]byte, MaxData), make([]byte, MaxData)
			b.SetBytes(MaxData)
			b.ReportAllocs()
			go func() {
				for range b.N {
					_, _ = out.Write(block)
				}
			}()
			for got := 0; got < b.N*MaxData; {
				n, err := in.Read(buf)
				if err != nil {
					b.Fatal(err)
				}
				got += n
			}
			d.close()
			_, _ = ca.Close(), cb.Close()
		})
	}
}

func BenchmarkRoundTrip200B(b *testing.B) {
	for name, open := range streams(b) {
		b.Run(name, func(b *testing.B) {
			d := open()
			ca, cb := NewConn(d.ar, d.aw), NewConn(d.br, d.bw)
			go func() {
				for {
					f, err := cb.Next()
					if err != nil || cb.Send(f) != nil {
						return
					}
				}
			}()
			msg := Frame{Type: TypePing, Payload: make([]byte, 200)}
			b.ReportAllocs()
			for b.Loop() {
				if err := ca.Send(msg); err != nil {
					b.Fatal(err)
				}
				if _, err := ca.Next(); err != nil {
					b.Fatal(err)
				}
			}
			d.close()
			_, _ = ca.Close(), cb.Close()
		})
	}
}
