package measure

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What a descendant takes counts, and a server without one is the control.
func TestDescendantsCount(t *testing.T) {
	alone, err := Start(t.Context(), server("alone"))
	require.NoError(t, err)
	parent, err := Start(t.Context(), server("parent"))
	require.NoError(t, err)
	assert.Greater(t, parent.Memory, alone.Memory+60<<20)
	assert.Greater(t, parent.CPU, alone.CPU+50*time.Millisecond)
	assert.Less(t, alone.Memory, int64(60<<20))
}

func TestParseStat(t *testing.T) {
	const rest = " S 7 1 1 0 -1 4194560 1 2 3 4 10 20 30 40 20 0"
	for stat, want := range map[string]process{
		"5 (a)" + rest:        {7, 300 * time.Millisecond, 700 * time.Millisecond},
		"5 (a) b) (c)" + rest: {7, 300 * time.Millisecond, 700 * time.Millisecond},
	} {
		got, ok := parseStat(stat)
		assert.True(t, ok, stat)
		assert.Equal(t, want, got)
	}
	for _, bad := range []string{"", "5 (a", "5 (a) S x 1 1 0 -1 4194560 1 2 3 4 10 20 30 40 20 0", "5 (a) S 7 1 1", "5 (a) S 7 1 1 0 -1 4194560 1 2 3 4 x 20 30 40 20 0"} {
		_, ok := parseStat(bad)
		assert.False(t, ok, bad)
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add("5 (a) S 7 1 1 0 -1 4194560 1 2 3 4 10 20 30 40 20 0")
	f.Add("5 (a")
	f.Fuzz(func(t *testing.T, stat string) {
		if p, ok := parseStat(stat); !ok {
			require.Equal(t, process{}, p)
		}
	})
}
