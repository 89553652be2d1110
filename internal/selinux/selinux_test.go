package selinux

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestHint(t *testing.T) {
	for _, tt := range []struct {
		name    string
		enforce string
		dir     string
		want    string
	}{
		{"enforcing", "1", "/home/me/project", "chcon -Rt container_file_t /home/me/project`"},
		{"enforcing, with a line end", "1\n", "/srv/a b", "chcon -Rt container_file_t '/srv/a b'`"},
		{"permissive", "0", "/home/me/project", ""},
		{"without SELinux", "", "/home/me/project", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := fstest.MapFS{}
			if tt.enforce != "" {
				root["sys/fs/selinux/enforce"] = &fstest.MapFile{Data: []byte(tt.enforce)}
			}
			hint := Hint(root, tt.dir)
			if tt.want == "" {
				require.Empty(t, hint)
				return
			}
			require.Contains(t, hint, "SELinux is enforcing")
			require.Contains(t, hint, tt.want)
		})
	}
}
