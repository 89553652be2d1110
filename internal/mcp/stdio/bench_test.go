package stdio

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"mcpagents/internal/mcp"
)

func BenchmarkReader(b *testing.B) {
	for _, size := range []int{200, 64 << 10} {
		for mode, one := range map[mcp.Mode]string{mcp.Line: sized(size) + "\n", mcp.Framed: frame(sized(size))} {
			b.Run(fmt.Sprintf("%v/%d", mode, size), func(b *testing.B) {
				data := bytes.Repeat([]byte(one), max(1, 1<<20/size))
				src := bytes.NewReader(data)
				r := NewReader(io.MultiReader(), ReaderOptions{})
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					m, err := r.Next()
					if err == io.EOF {
						src.Reset(data)
						r = NewReader(src, ReaderOptions{})
						continue
					}
					if err != nil || len(m.Raw) != size {
						b.Fatal(err, len(m.Raw))
					}
				}
			})
		}
	}
}

func BenchmarkWriter(b *testing.B) {
	for _, size := range []int{200, 64 << 10} {
		for _, mode := range []mcp.Mode{mcp.Line, mcp.Framed} {
			b.Run(fmt.Sprintf("%v/%d", mode, size), func(b *testing.B) {
				w, body := NewWriter(io.Discard), []byte(sized(size))
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					if err := w.Send(mode, body); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
