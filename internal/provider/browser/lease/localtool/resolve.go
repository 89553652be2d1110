package localtool

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// pkg is the npm package.
const pkg = "chrome-devtools-mcp"

// program is a command and where it was found.
type program struct {
	argv   []string
	source string
}

// Where a program was found. The texts are part of a line that users look for.
const (
	sourceExplicit = "explicit"
	sourcePackage  = "local package"
	sourceBinary   = "local binary"
	sourceNPX      = "npx fallback"
)

// resolve finds the program: command if it is not empty, what is installed in
// dir, else npx.
func resolve(command []string, dir string) program {
	if len(command) > 0 {
		return program{command, sourceExplicit}
	}
	if script := packageScript(dir); script != "" {
		if node, err := exec.LookPath("node"); err == nil {
			return program{[]string{node, script}, sourcePackage}
		}
	}
	binary := filepath.Join(dir, "node_modules", ".bin", pkg)
	if runtime.GOOS == "windows" {
		binary += ".cmd"
	}
	if isFile(binary) {
		return program{[]string{binary}, sourceBinary}
	}
	return program{[]string{"npx", "-y", pkg + "@latest"}, sourceNPX}
}

// packageScript is the script that the installed package declares, empty if
// there is none.
func packageScript(dir string) string {
	root := filepath.Join(dir, "node_modules", pkg)
	text, err := os.ReadFile(filepath.Join(root, "package.json"))
	if err != nil {
		return ""
	}
	var manifest struct {
		Bin json.RawMessage `json:"bin"`
	}
	if json.Unmarshal(text, &manifest) != nil {
		return ""
	}
	var one string
	var named map[string]string
	if json.Unmarshal(manifest.Bin, &one) != nil && json.Unmarshal(manifest.Bin, &named) == nil {
		one = named[pkg]
	}
	if !filepath.IsLocal(one) || !isFile(filepath.Join(root, one)) {
		return ""
	}
	return filepath.Join(root, one)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
