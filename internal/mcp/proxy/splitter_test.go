package proxy

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestSplitterLines(t *testing.T) {
	tests := []struct {
		name, in string
		want     []Piece
	}{
		{"nothing", "", nil},
		{"lines", "a\nb\n", []Piece{line("a\n"), line("b\n")}},
		{"blank lines and CR stay", "\n\r\n", []Piece{line("\n"), line("\r\n")}},
		{"invalid UTF-8 stays", "\xff\xfe\n", []Piece{line("\xff\xfe\n")}},
		{"the last line has no LF", "a\nhalf", []Piece{line("a\n"), {Data: []byte("half"), First: true, Cut: true}}},
	}
	for _, tt := range tests {
		for reader, r := range map[string]io.Reader{
			"at once": strings.NewReader(tt.in), "byte by byte": iotest.OneByteReader(strings.NewReader(tt.in)),
		} {
			t.Run(tt.name+" "+reader, func(t *testing.T) {
				var got []Piece
				require.NoError(t, Split(r, func(p Piece) bool { got = append(got, p); return true }))
				assert.Equal(t, tt.want, withoutMarks(got))
			})
		}
	}
}

// withoutMarks leaves out what depends on how the stream was cut in reads.
func withoutMarks(pieces []Piece) []Piece {
	var out []Piece
	for _, p := range pieces {
		if !p.Begun {
			p.Behind = false
			out = append(out, p)
		}
	}
	return out
}

func TestSplitterTellsOfHalfLines(t *testing.T) {
	tests := []struct {
		name   string
		chunks []string
		want   []Piece
	}{
		{"a line begins", []string{"ab", "c", "d\n"}, []Piece{{Begun: true}, line("abcd\n")}},
		{"behind a line", []string{"a\nb", "c", "\n"}, []Piece{{Data: []byte("a\n"), First: true, Last: true, Behind: true}, line("bc\n")}},
		{"behind the last of several lines", []string{"a\nb\nc", "\n"},
			[]Piece{line("a\n"), {Data: []byte("b\n"), First: true, Last: true, Behind: true}, line("c\n")}},
		{"after a whole line", []string{"a\n", "b", "\n"}, []Piece{line("a\n"), {Begun: true}, line("b\n")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var s Splitter
			var got []Piece
			for _, c := range tt.chunks {
				s.Feed([]byte(c), func(p Piece) bool { got = append(got, p); return true })
			}
			assert.Equal(t, tt.want, got)
		})
	}
	var s Splitter
	s.Feed([]byte("a\nhalf"), func(Piece) bool { return true })
	assert.Equal(t, "half", string(s.Held()))
	s.Feed([]byte("\n"), func(Piece) bool { return true })
	assert.Empty(t, s.Held())
}

func line(s string) Piece { return Piece{Data: []byte(s), First: true, Last: true} }

func TestSplitterLimitIsExact(t *testing.T) {
	longest := strings.Repeat("x", MaxLine-1) + "\n"
	var got []Piece
	require.NoError(t, Split(strings.NewReader(longest), func(p Piece) bool { got = append(got, p); return true }))
	got = withoutMarks(got)
	require.Len(t, got, 1)
	assert.True(t, got[0].Whole())
	assert.Len(t, got[0].Head(), MaxLine, "a whole line may be looked at whole")

	got = nil
	require.NoError(t, Split(strings.NewReader("x"+longest+"next\n"), func(p Piece) bool { got = append(got, p); return true }))
	got = withoutMarks(got)
	require.Greater(t, len(got), 2)
	first, last := got[0], got[len(got)-2]
	assert.True(t, first.First && !first.Last && !first.Cut, "a longer line streams")
	assert.Len(t, first.Head(), HeadSize)
	assert.True(t, last.Last && !last.First)
	assert.Equal(t, line("next\n"), got[len(got)-1])
}

func TestSplitStopsAndReportsErrors(t *testing.T) {
	calls := 0
	require.NoError(t, Split(strings.NewReader("a\nb\n"), func(Piece) bool { calls++; return false }))
	assert.Equal(t, 1, calls, "no piece after a refused one")
	boom := errors.New("boom")
	var got []Piece
	err := Split(io.MultiReader(strings.NewReader("half"), iotest.ErrReader(boom)), func(p Piece) bool { got = append(got, p); return true })
	assert.ErrorIs(t, err, boom)
	assert.Equal(t, []Piece{{Data: []byte("half"), First: true, Cut: true}}, withoutMarks(got), "what came is not lost")
}

// checkPieces asserts what every split must satisfy.
func checkPieces(t require.TestingT, in []byte, limit int, pieces []Piece) {
	var all []byte
	inside := false
	known := false // that a line is half read
	for i, p := range pieces {
		if p.Begun {
			require.False(t, known, "said once")
			require.Empty(t, p.Data)
			known = true
			continue
		}
		known = p.Behind
		all = append(all, p.Data...)
		require.NotEmpty(t, p.Data)
		require.Equal(t, !inside, p.First, "piece %d", i)
		require.Equal(t, p.Last, bytes.HasSuffix(p.Data, []byte("\n")), "piece %d", i)
		require.LessOrEqual(t, bytes.Count(p.Data, []byte("\n")), 1)
		if p.Whole() {
			require.LessOrEqual(t, len(p.Data), limit)
		}
		if p.Cut {
			require.Equal(t, len(pieces)-1, i, "only the last piece is cut")
			require.True(t, i > 0 && (pieces[i-1].Begun || pieces[i-1].Behind), "a half line was told of")
		}
		inside = !p.Last
	}
	require.Equal(t, in, all)
}

func splitAll(in []byte, limit int, sizes func() int) []Piece {
	s := Splitter{limit: limit}
	pieces := []Piece{}
	keep := func(p Piece) bool { pieces = append(pieces, p); return true }
	for len(in) > 0 {
		n := min(max(1, sizes()), len(in))
		chunk := bytes.Clone(in[:n])
		s.Feed(chunk, keep)
		clear(chunk) // pieces must not share it
		in = in[n:]
	}
	s.Rest(keep)
	return pieces
}

func TestSplitterProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := []byte(rapid.StringMatching(`([a-c]{0,40}\n?){0,8}`).Draw(t, "in"))
		limit := rapid.IntRange(1, 30).Draw(t, "limit")
		pieces := splitAll(in, limit, func() int { return rapid.IntRange(1, 50).Draw(t, "size") })
		if len(in) > 0 {
			checkPieces(t, in, limit, pieces)
		}
	})
}

func FuzzSplitter(f *testing.F) {
	f.Add([]byte("{\"a\":1}\n\nhalf"), uint8(3), uint8(5))
	f.Add([]byte("aaaaaaaaaaaaaaaaaaaa\nb\n"), uint8(7), uint8(4))
	f.Add([]byte("\xff\r\n"), uint8(1), uint8(200))
	f.Fuzz(func(t *testing.T, in []byte, size, limit uint8) {
		if len(in) == 0 {
			return
		}
		bound := int(limit) + 1
		checkPieces(t, in, bound, splitAll(in, bound, func() int { return int(size) }))
	})
}
