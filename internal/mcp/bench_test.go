package mcp

import (
	"fmt"
	"strings"
	"testing"
)

func BenchmarkEnvelope(b *testing.B) {
	for _, size := range []int{200, 64 << 10} {
		body := []byte(sized(size))
		b.Run(fmt.Sprint("parse/", size), func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ParseEnvelope(body); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprint("scan/", size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !ScanPrefix(body).ID.Usable() {
					b.Fatal("no id")
				}
			}
		})
	}
}

// sized is a request of n bytes.
func sized(n int) string {
	const head, tail = `{"jsonrpc":"2.0","id":7,"method":"m","params":{"x":"`, `"}}`
	return head + strings.Repeat("x", n-len(head)-len(tail)) + tail
}
