package selfcontainer

import (
	"os"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const (
	own   = "f157d9c338f012e3b888dc6bd03ae4cf25e3288ef3bdd2a8b261f5a8d43cc4ce"
	other = "fa0681244b12ecb9e5f29af4679cd6e28c8343ae126793ea9877fdd933bd220a"
)

func TestCandidates(t *testing.T) {
	for _, tt := range []struct {
		name     string // of files in testdata: NAME.mountinfo and NAME.cgroup
		hostname string
		mark     string
		want     []Candidate
	}{
		{"docker20-cgroup1", "f157d9c338f0", ".dockerenv", []Candidate{{own, true}}},
		{"docker29-cgroup2", "f157d9c338f0", ".dockerenv", []Candidate{{own, false}}}, // a cgroup namespace of its own
		{"docker-cgroup2-host", "web", ".dockerenv", []Candidate{{own, true}}},
		{"docker-joined-network", "fa0681244b12", ".dockerenv", []Candidate{{other, false}}},
		{"docker-in-docker", "f157d9c338f0", ".dockerenv", []Candidate{{own, true}}}, // the outer container is not ours
		{"podman-rootless", "f157d9c338f0", "run/.containerenv", []Candidate{{own, false}}},
		{"podman-cgroup1", "f157d9c338f0", "run/.containerenv", []Candidate{{own, true}}},
		{"kubernetes-containerd", "web-7d9c8b6f5-x2x4z", "", []Candidate{{own, true}, {other, false}}},
		{"host", "vm", "", nil},
		{"host", "deadbeefcafe", "", nil}, // a machine may be called so
		{"nothing", "f157d9c338f0", ".dockerenv", []Candidate{{"f157d9c338f0", false}}},
		{"nothing", "web", ".dockerenv", nil},
	} {
		t.Run(tt.name+" "+tt.hostname, func(t *testing.T) {
			root := fstest.MapFS{}
			if tt.mark != "" {
				root[tt.mark] = &fstest.MapFile{}
			}
			for _, kind := range []string{"mountinfo", "cgroup"} {
				if b, err := os.ReadFile("testdata/" + tt.name + "." + kind); err == nil {
					root["proc/self/"+kind] = &fstest.MapFile{Data: b}
				} else {
					require.Equal(t, "nothing", tt.name)
				}
			}
			require.Equal(t, tt.want, Candidates(root, tt.hostname))
		})
	}
}

func TestUpperDir(t *testing.T) {
	for name, want := range map[string]string{
		"docker20-cgroup1": "/var/lib/docker/overlay2/7a4bdc0b9d5e5d2cd2bcfd1c34be7b7e4b2e3f1de6a7d9b0d2a4d4ab6b2ab2bb/diff",
		"host":             "",
	} {
		b, err := os.ReadFile("testdata/" + name + ".mountinfo")
		require.NoError(t, err)
		require.Equal(t, want, UpperDir(fstest.MapFS{"proc/self/mountinfo": {Data: b}}), name)
	}
	require.Empty(t, UpperDir(fstest.MapFS{}))
}

func TestLocate(t *testing.T) {
	c := Container{ID: own, Mounts: []Mount{
		{Target: "/home/me/project", Source: "/home/me/project"},
		{Target: "/work", Source: "/srv/a"},
		{Target: "/work/sub", Source: "/srv/b/"},
		{Target: "/work/tmp"},
		{Target: "/ro", Source: "/srv/ro", ReadOnly: true},
		{Target: "/etc/corp.pem", Source: "/opt/corp.pem", ReadOnly: true},
	}}
	for _, tt := range []struct {
		path, source string
		readOnly     bool
	}{
		{"/home/me/project", "/home/me/project", false},
		{"/home/me/project/", "/home/me/project", false},
		{"/home/me/project/a b/c", "/home/me/project/a b/c", false},
		{"/work", "/srv/a", false},
		{"/work/x", "/srv/a/x", false},
		{"/work/sub", "/srv/b/", false},
		{"/work/sub/x", "/srv/b/x", false},
		{"/work/subway", "/srv/a/subway", false},
		{"/ro/x", "/srv/ro/x", true},
		{"/etc/corp.pem", "/opt/corp.pem", true},
		{"/home/me", "", false},
		{"/home/me/project2", "", false},
		{"/work/tmp/x", "", false},
		{"/", "", false},
		{"/work/../etc/passwd", "", false},
	} {
		source, readOnly, err := c.Locate(tt.path)
		if tt.source == "" {
			var unshared *UnsharedError
			require.ErrorAs(t, err, &unshared, tt.path)
			clean := path.Clean(tt.path)
			require.ErrorContains(t, err, "add -v "+clean+":"+clean)
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, tt.source, source, tt.path)
		assert.Equal(t, tt.readOnly, readOnly, tt.path)
	}
	_, _, err := c.Locate("/a b")
	require.ErrorContains(t, err, "add -v '/a b:/a b'")
	whole := Container{Mounts: []Mount{{Target: "/", Source: "/mnt"}}}
	source, _, err := whole.Locate("/x")
	require.NoError(t, err)
	require.Equal(t, "/mnt/x", source)
}

// Whatever the mounts are, a path is found below the source of the deepest
// mount that holds it, and nowhere else.
func TestLocateProperty(t *testing.T) {
	part := rapid.StringMatching(`[a-c]{1,2}`)
	dir := rapid.Custom(func(t *rapid.T) string {
		return "/" + strings.Join(rapid.SliceOfN(part, 1, 4).Draw(t, "parts"), "/")
	})
	rapid.Check(t, func(t *rapid.T) {
		var c Container
		for _, target := range rapid.SliceOfDistinct(dir, rapid.ID[string]).Draw(t, "targets") {
			c.Mounts = append(c.Mounts, Mount{Target: target, Source: "/host" + target})
		}
		name := dir.Draw(t, "name")
		held := false
		for p := name; p != "/"; p = path.Dir(p) {
			for _, m := range c.Mounts {
				held = held || m.Target == p
			}
		}
		source, _, err := c.Locate(name)
		if held != (err == nil) || (held && source != "/host"+name) {
			t.Fatalf("%s among %v: %q, %v", name, c.Mounts, source, err)
		}
	})
}

func FuzzCandidates(f *testing.F) {
	for _, name := range []string{"docker20-cgroup1", "podman-rootless", "kubernetes-containerd"} {
		mounts, err := os.ReadFile("testdata/" + name + ".mountinfo")
		require.NoError(f, err)
		cgroup, err := os.ReadFile("testdata/" + name + ".cgroup")
		require.NoError(f, err)
		f.Add(mounts, cgroup, "f157d9c338f0")
	}
	f.Fuzz(func(t *testing.T, mounts, cgroup []byte, hostname string) {
		root := fstest.MapFS{".dockerenv": {}, "proc/self/mountinfo": {Data: mounts}, "proc/self/cgroup": {Data: cgroup}}
		for _, c := range Candidates(root, hostname) {
			require.Regexp(t, `^[0-9a-f]{12,64}$`, c.ID)
		}
		UpperDir(root)
	})
}
