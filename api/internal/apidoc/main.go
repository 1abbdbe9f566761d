// Apidoc writes, from the definitions of the kinds, a JSON schema and a reference page for each
// kind.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/holdfast-storage/holdfast/api/crd"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: apidoc DIRECTORY-OF-SCHEMAS DIRECTORY-OF-PAGES")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "apidoc:", err)
		os.Exit(1)
	}
}

// write writes all files, and removes those of kinds that are gone.
func write(schemas, pages string) error {
	kinds, err := crd.Kubernetes()
	if err != nil {
		return err
	}
	texts, err := schemaFiles(kinds)
	if err != nil {
		return err
	}
	if err := writeAll(schemas, "*.json", texts); err != nil {
		return err
	}
	return writeAll(pages, "*.md", pageFiles(kinds))
}

// writeAll makes the files of a directory that match a pattern the given ones.
func writeAll(dir, pattern string, texts map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("while making the directory: %w", err)
	}
	there, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		return err
	}
	for _, file := range there {
		if _, wanted := texts[filepath.Base(file)]; !wanted {
			if err := os.Remove(file); err != nil {
				return fmt.Errorf("while removing the file of a kind that is gone: %w", err)
			}
		}
	}
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return fmt.Errorf("while writing a file: %w", err)
		}
	}
	return nil
}
