package wire

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFileRoundTrip(t *testing.T) {
	for _, name := range FileNames {
		for _, data := range [][]byte{nil, []byte("{}"), bytes.Repeat([]byte{0xff}, MaxFile)} {
			b, err := EncodeFile(File{Name: name, Data: data})
			require.NoError(t, err)
			require.LessOrEqual(t, len(b), MaxControl)
			got, err := DecodeFile(Frame{Type: TypeFile, Payload: b})
			require.NoError(t, err)
			require.Equal(t, name, got.Name)
			require.True(t, bytes.Equal(data, got.Data))
		}
	}
}

func TestFileIsRefused(t *testing.T) {
	for _, name := range []string{"", ".", "..", "../auth.json", "/etc/passwd", "auth.json/", "auth.json\x00", "AUTH.JSON", "id_rsa"} {
		_, err := EncodeFile(File{Name: name})
		require.Error(t, err, name)
		_, err = DecodeFile(Frame{Type: TypeFile, Payload: append([]byte{byte(len(name))}, name...)})
		var broken *ProtocolError
		require.ErrorAs(t, err, &broken, name)
		_, err = DecodeCollected(Frame{Type: TypeCollected, Payload: append([]byte{1, 0, byte(len(name))}, name...)})
		require.ErrorAs(t, err, &broken, name)
	}
	_, err := EncodeFile(File{Name: "auth.json", Data: make([]byte, MaxFile+1)})
	require.Error(t, err)
	big := append([]byte{9}, "auth.json"...)
	_, err = DecodeFile(Frame{Type: TypeFile, Payload: append(big, make([]byte, MaxFile+1)...)})
	require.ErrorContains(t, err, "at most")
	long := append([]byte{255}, make([]byte, 255)...) // 1+255 does not fit the byte
	for _, b := range [][]byte{nil, {9}, {200, 'a'}, {10, 'a', 'u', 't', 'h'}, long} {
		_, err := DecodeFile(Frame{Type: TypeFile, Payload: b})
		require.Error(t, err, "%v", b)
	}
	_, err = DecodeFile(Frame{Type: TypeFile, Payload: append([]byte{9}, "auth.json"...)})
	require.NoError(t, err, "the control: an empty file is a file")
}

func TestCollectedRoundTrip(t *testing.T) {
	for _, want := range []Collected{
		{Name: "auth.json", State: FilePresent, Asked: true, Data: []byte(`{"a":1}`)},
		{Name: "auth.json", State: FilePresent, Data: bytes.Repeat([]byte("x"), MaxFile)},
		{Name: ".claude.json", State: FileMissing, Asked: true, Data: []byte{}},
		{Name: "config.toml", State: FileRefused, Data: []byte{}},
	} {
		b := EncodeCollected(want)
		require.LessOrEqual(t, len(b), MaxControl)
		got, err := DecodeCollected(Frame{Type: TypeCollected, Payload: b})
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for name, b := range map[string][]byte{
		"state 0": {0, 0, 9}, "state 4": {4, 0, 9}, "asked 2": {1, 2, 9}, "short": {1}, "no name": {1, 1},
	} {
		_, err := DecodeCollected(Frame{Type: TypeCollected, Payload: append(b, "auth.json"...)[:len(b)]})
		require.Error(t, err, name)
	}
}

// The decoded content must not change when the reader's buffer is used again.
func TestDecodedContentIsACopy(t *testing.T) {
	b, err := EncodeFile(File{Name: "auth.json", Data: []byte("secret")})
	require.NoError(t, err)
	f, err := DecodeFile(Frame{Type: TypeFile, Payload: b})
	require.NoError(t, err)
	clear(b)
	require.Equal(t, "secret", string(f.Data))
}

func TestUint32(t *testing.T) {
	n, err := Uint32(Frame{Type: TypeCredit, Payload: AppendUint32(0xfffefdfc)})
	require.NoError(t, err)
	require.Equal(t, uint32(0xfffefdfc), n)
	for _, size := range []int{0, 3, 5} {
		_, err := Uint32(Frame{Type: TypeCredit, Payload: make([]byte, size)})
		require.EqualError(t, err, Errorf("credit frame of %d bytes, want 4", size).Error())
	}
}

// The JSON names are the protocol: a build of another day must understand them.
func TestJSONPayloads(t *testing.T) {
	for want, v := range map[string]any{
		`{"magic":"mcp-agents-sandbox","min":1,"max":1,"sandbox":"s","grace_ns":5000000000,"lifeline_ns":60000000000}`: Hello{
			Magic: Magic, Min: 1, Max: 1, Sandbox: "s", Grace: 5 * time.Second, Lifeline: time.Minute},
		`{"argv":["a"],"env":null,"dir":"/","stdin":true,"main":true}`: Spawn{Argv: []string{"a"}, Dir: "/", Stdin: true, Main: true},
		`{"code":137,"signal":9,"reason":"signal","bytes":[1,2,3]}`:    Exit{Code: 137, Signal: 9, Reason: ReasonSignal, Bytes: [3]int64{1, 2, 3}},
		`{"number":15}`:                 Signal{Number: 15},
		`{"code":"version","text":"x"}`: Error{Code: "version", Text: "x"},
	} {
		require.JSONEq(t, want, string(Marshal(v)))
	}
	var w Welcome
	require.NoError(t, Unmarshal(Frame{Type: TypeHello, Payload: []byte(`{"version":1,"of_a_later_build":true}`)}, &w))
	require.Equal(t, 1, w.Version)
	err := Unmarshal(Frame{Type: TypeHello, Payload: []byte(`{"version":"one"}`)}, &w)
	var broken *ProtocolError
	require.ErrorAs(t, err, &broken)
	require.Panics(t, func() { Marshal(make(chan int)) })
}

func FuzzPayloads(f *testing.F) {
	f.Add([]byte("\x09auth.json{}"))
	f.Add([]byte("\x01\x00\x09auth.json{}"))
	f.Add([]byte{0, 0, 4, 0})
	f.Add(append([]byte{255}, make([]byte, 300)...))
	f.Add([]byte(`{"argv":["x"]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		if file, err := DecodeFile(Frame{Type: TypeFile, Payload: in}); err == nil {
			b, err := EncodeFile(file)
			require.NoError(t, err)
			require.Equal(t, in, b)
		}
		if c, err := DecodeCollected(Frame{Type: TypeCollected, Payload: in}); err == nil {
			require.True(t, ValidName(c.Name))
			require.Equal(t, in, EncodeCollected(c))
		}
		if n, err := Uint32(Frame{Type: TypeCredit, Payload: in}); err == nil {
			require.Equal(t, in, AppendUint32(n))
		}
		var sp Spawn
		if Unmarshal(Frame{Type: TypeSpawn, Payload: in}, &sp) == nil {
			require.True(t, json.Valid(Marshal(sp)))
		}
	})
}
