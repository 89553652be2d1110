package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// tree makes directories below a fresh, resolved temporary directory.
func tree(t *testing.T, dirs ...string) string {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for _, d := range dirs {
		require.NoError(t, os.MkdirAll(filepath.Join(base, d), 0o755))
	}
	return base
}

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

func link(t *testing.T, target, path string) {
	t.Helper()
	require.NoError(t, os.Symlink(target, path))
}

func TestResolveNamed(t *testing.T) {
	base := tree(t, "a/sub", "b", "start/rel", "deep/x")
	link(t, filepath.Join(base, "a"), filepath.Join(base, "alias"))
	link(t, filepath.Join(base, "deep", "x"), filepath.Join(base, "start", "lnk"))
	start := filepath.Join(base, "start")
	r, err := Resolve([]string{
		filepath.Join(base, "b") + "/", // trailing slash
		filepath.Join(base, "alias"),   // a link
		filepath.Join(base, "a"),       // the same again
		"rel",                          // relative to the startup directory
		"lnk/..",                       // the parent of the link's target, as the kernel has it
		base + "/a/../a/./sub",
	}, start, "", nil)
	require.NoError(t, err)
	join := func(p string) string { return filepath.Join(base, p) }
	want := []string{join("b"), join("a"), join("start/rel"), join("deep"), join("a/sub")}
	assert.Equal(t, want, r.Dirs())
	assert.Equal(t, strings.Join(want, ", "), r.String())

	r.Dirs()[0] = "changed"
	assert.Equal(t, want, r.Dirs(), "callers get a copy")
}

func TestResolveNamedErrors(t *testing.T) {
	base := tree(t, "a")
	write(t, filepath.Join(base, "file"), "x")
	link(t, filepath.Join(base, "nowhere"), filepath.Join(base, "dangling"))
	link(t, "loop", filepath.Join(base, "loop"))
	for path, problem := range map[string]string{
		"":                             "must be an absolute path",
		"missing":                      "must exist",
		"a/missing/tail":               "must exist",
		"dangling":                     "must exist",
		"loop":                         "must exist",
		"file":                         "must be a directory",
		filepath.Join(base, "missing"): "must exist",
		"nul\x00":                      "must exist",
	} {
		_, err := Resolve([]string{filepath.Join(base, "a"), path}, base, "", nil)
		var root *RootError
		require.ErrorAs(t, err, &root, "%q", path)
		assert.Equal(t, problem, root.Problem, "%q", path)
		assert.Equal(t, path, root.Path)
		assert.Contains(t, err.Error(), "--workspace")
		assert.NotContains(t, err.Error(), "\x00")
	}
}

func TestResolveDefault(t *testing.T) {
	base := tree(t, "home/u/project")
	link(t, filepath.Join(base, "home/u/project"), filepath.Join(base, "alias"))
	r, err := Resolve(nil, filepath.Join(base, "alias"), filepath.Join(base, "home/u"), nil)
	require.NoError(t, err)
	assert.Equal(t, []string{filepath.Join(base, "home/u/project")}, r.Dirs())
	assert.Equal(t, filepath.Join(base, "home/u/project"), r.Default())

	_, err = Resolve(nil, filepath.Join(base, "gone"), "", nil)
	var root *RootError
	require.ErrorAs(t, err, &root)
	assert.Equal(t, "must exist", root.Problem)
}

func TestDefaultRoot(t *testing.T) {
	base := tree(t, "a/x", "a2", "b")
	dirs := []string{filepath.Join(base, "b"), filepath.Join(base, "a"), filepath.Join(base, "a/x")}
	for start, want := range map[string]string{
		"a/x": "a", // the first that holds it, not the innermost
		"a":   "a",
		"a2":  "b", // a twin by prefix is not inside
		"b":   "b",
		"":    "b",
	} {
		r, err := Resolve(dirs, filepath.Join(base, start), "", nil)
		require.NoError(t, err)
		assert.Equal(t, filepath.Join(base, want), r.Default(), "started in %q", start)
	}
	r, err := Resolve(dirs, filepath.Join(base, "gone"), "", nil)
	require.NoError(t, err, "named roots do without the startup directory")
	assert.Equal(t, filepath.Join(base, "b"), r.Default())
	assert.Empty(t, Roots{}.Default())
}

func TestCwd(t *testing.T) {
	base := tree(t, "home/in/deep", "home2", "other")
	home := filepath.Join(base, "home")
	outside := "must be inside a workspace root: " + home
	link(t, filepath.Join(base, "other"), filepath.Join(home, "escape"))
	link(t, "../other", filepath.Join(home, "escape-relative"))
	link(t, filepath.Join(home, "in"), filepath.Join(base, "other", "back"))
	link(t, filepath.Join(base, "nowhere"), filepath.Join(home, "dangling"))
	link(t, filepath.Join(home, "in/deep"), filepath.Join(home, "deep-link"))
	write(t, filepath.Join(home, "file"), "x")
	r, err := Resolve([]string{home}, base, "", nil)
	require.NoError(t, err)

	for path, want := range map[string]string{
		"home": "home", "home/": "home", "home//in/.": "home/in", "home/in/..": "home",
		"other/back": "home/in", "home/escape/back/deep": "home/in/deep",
		"home/deep-link/..": "home/in", "home/../home/in": "home/in",
	} {
		got, err := r.Cwd(base + "/" + path)
		if assert.NoError(t, err, path) {
			assert.Equal(t, filepath.Join(base, want), got, path)
		}
	}
	for path, problem := range map[string]string{
		base:                             outside,
		home + "2":                       outside, // twin by prefix
		home + "/escape":                 outside,
		home + "/escape-relative":        outside,
		home + "/..":                     outside,
		home + "/in/../../other":         outside,
		home + "/escape/../home2":        outside,
		"/":                              outside,
		home + "/missing":                "must exist",
		home + "/in/missing/..":          "must exist",
		home + "/dangling":               "must exist",
		base + "/nowhere":                "must exist",
		home + "/file":                   "must be a directory",
		home + "/file/x":                 "must exist",
		home + "/nul\x00":                "must exist",
		home + strings.Repeat("/x", 1e4): "must exist",
		"":                               "must be an absolute path",
		"home":                           "must be an absolute path",
		"./home":                         "must be an absolute path",
		"~/x":                            "must be an absolute path",
	} {
		_, err := r.Cwd(path)
		var fault *CwdError
		if assert.ErrorAs(t, err, &fault, path) {
			assert.Equal(t, problem, fault.Error(), path)
		}
	}
	_, err = Roots{}.Cwd(home)
	assert.EqualError(t, err, "must be inside a workspace root: (none)")
}

func TestHolding(t *testing.T) {
	r := Roots{dirs: []string{"/a/b", "/a", "/"}}
	for path, want := range map[string]string{"/a/b": "/a/b", "/a/b/c": "/a/b", "/a/bc": "/a", "/ab": "/", "/": "/"} {
		got, ok := r.Holding(path)
		assert.True(t, ok, path)
		assert.Equal(t, filepath.FromSlash(want), got, path)
	}
	_, ok := r.Holding("")
	assert.False(t, ok)
}

// TestCwdNeverLeavesTheRoot walks random paths through a tree full of links:
// what passes is a real directory inside the root.
func TestCwdNeverLeavesTheRoot(t *testing.T) {
	base := tree(t, "root/a/b", "rootx/a", "out/a")
	root := filepath.Join(base, "root")
	link(t, filepath.Join(base, "out"), filepath.Join(root, "o"))
	link(t, "..", filepath.Join(root, "a", "up"))
	link(t, root, filepath.Join(base, "out", "r"))
	r, err := Resolve([]string{root}, base, "", nil)
	require.NoError(t, err)
	_, err = r.Cwd(filepath.Join(root, "a", "b"))
	require.NoError(t, err, "the control: not every path is refused")
	rapid.Check(t, func(t *rapid.T) {
		start := rapid.SampledFrom([]string{base, root}).Draw(t, "start")
		elems := rapid.SliceOfN(rapid.SampledFrom([]string{"root", "rootx", "out", "a", "b", "o", "r", "up", "..", ".", ""}), 0, 8).Draw(t, "path")
		dir, err := r.Cwd(start + "/" + strings.Join(elems, "/"))
		if err != nil {
			return
		}
		real, err := filepath.EvalSymlinks(dir)
		require.NoError(t, err)
		assert.Equal(t, real, dir)
		rel, err := filepath.Rel(root, dir)
		require.NoError(t, err)
		assert.True(t, filepath.IsLocal(rel), dir)
	})
}

func TestMountable(t *testing.T) {
	own := t.TempDir()
	for dir, want := range map[string]bool{"/": false, "/usr": false, "/etc": false, own: true} {
		roots, err := Resolve([]string{dir, own}, own, "", nil)
		require.NoError(t, err)
		err = roots.Mountable()
		if want {
			require.NoError(t, err)
			continue
		}
		var root *RootError
		require.ErrorAs(t, err, &root)
		require.Contains(t, err.Error(), "is a directory that a container has of its own; name an existing directory with --workspace")
	}
}
