package stdio

import (
	"bytes"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
)

// The cut of the bytes decides nothing, and no input makes the reader hold more
// than its limit or lose its place for good.
func FuzzReader(f *testing.F) {
	for _, c := range readerCases {
		if len(c.in) < 10_000 {
			f.Add([]byte(c.in), uint16(7), false)
			f.Add([]byte(c.in), uint16(1), true)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, cut uint16, through bool) {
		opts := ReaderOptions{MaxMessage: 200, KeepBlank: through, LinesOnly: through}
		whole := readAll(bytes.NewReader(data), opts)
		assert.Equal(t, whole, readAll(chunks(data, []int{int(cut%100) + 1, 3}), opts))
		assert.LessOrEqual(t, len(whole), len(data)+1)
		for _, m := range whole {
			assert.LessOrEqual(t, len(m), 300)
		}
		if through {
			opts.MaxMessage = 0
			var out bytes.Buffer
			r, w := NewReader(iotest.HalfReader(bytes.NewReader(data)), opts), NewWriter(&out)
			for m, err := r.Next(); err == nil; m, err = r.Next() {
				assert.NoError(t, w.Forward(m))
			}
			assert.Equal(t, data, append([]byte{}, out.Bytes()...), "lines pass byte for byte")
		}
	})
}
