package setup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The pages show what setup writes into a file that is not there, byte for byte,
// and no other block of JSON or TOML.
func TestPagesShowWhatIsWritten(t *testing.T) {
	for _, c := range Clients() {
		b, err := os.ReadFile(filepath.Join("..", "..", "docs", "examples", c.Name+".md"))
		require.NoError(t, err, "every client has a page")
		page := string(b)
		blocks := 0
		for _, name := range []string{"absent", "absent-docker", "absent-gemini"} {
			want, err := os.ReadFile(filepath.Join("testdata", c.Name, name, "after-add"))
			if os.IsNotExist(err) {
				continue
			}
			require.NoError(t, err)
			language := "json"
			if _, ok := c.format.(tomlFormat); ok {
				language = "toml"
			}
			assert.Contains(t, page, "```"+language+"\n"+string(want)+"```\n", "%s: the block of testdata/%s/%s", c.Name, c.Name, name)
			blocks++
		}
		assert.GreaterOrEqual(t, blocks, 2)
		assert.Equal(t, blocks, strings.Count(page, "```json")+strings.Count(page, "```toml"), "%s: no other block", c.Name)
		for _, variable := range []string{c.workspace, c.home} {
			assert.Contains(t, page, variable, "%s: the page says what the client expands", c.Name)
		}
		assert.Contains(t, page, "mcp-agents setup "+c.Name+" --docker")
	}
}
