package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// Files are where the objects of a command come from.
type Files struct {
	// Names are files, directories, and addresses that begin with http:// or https://; "-" is standard
	// input.
	Names []string
	// Kustomize is a directory with a kustomization.yaml; empty for none.
	Kustomize string
	// Recursive has directories in directories read, too.
	Recursive bool
}

// Bind adds the flags.
func (f *Files) Bind(flags *pflag.FlagSet, what string) {
	flags.StringSliceVarP(&f.Names, "filename", "f", nil,
		"a file, directory or URL "+what+", in YAML or JSON; - is standard input; may be repeated")
	flags.StringVarP(&f.Kustomize, "kustomize", "k", "", "a directory with a kustomization.yaml, instead of -f")
	flags.BoolVarP(&f.Recursive, "recursive", "R", false, "also read the directories in the directory given with -f")
}

// Given says whether there are any.
func (f *Files) Given() bool { return len(f.Names) > 0 || f.Kustomize != "" }

// Source is the content of one file, with its name as people know it.
type Source struct {
	Name string
	Data []byte
}

// fetchTimeout bounds the reading of a URL, and mostBytes the content of each source.
const fetchTimeout, mostBytes = 30 * time.Second, 16 << 20

// Read reads all of them, in the order given; files of a directory in the order of their names.
func (f *Files) Read(stdin io.Reader) ([]Source, error) {
	if f.Kustomize != "" {
		if len(f.Names) > 0 {
			return nil, errors.New("use either -f or -k")
		}
		return kustomized(f.Kustomize)
	}
	var all []Source
	for _, name := range f.Names {
		sources, err := f.read(name, stdin)
		if err != nil {
			return nil, err
		}
		all = append(all, sources...)
	}
	return all, nil
}

func (f *Files) read(name string, stdin io.Reader) ([]Source, error) {
	switch {
	case name == "-":
		data, err := readBounded(stdin)
		if err != nil {
			return nil, fmt.Errorf("while reading standard input: %w", err)
		}
		return []Source{{"standard input", data}}, nil
	case strings.HasPrefix(name, "http://"), strings.HasPrefix(name, "https://"):
		data, err := fetch(name)
		if err != nil {
			return nil, fmt.Errorf("while reading %s: %w", name, err)
		}
		return []Source{{name, data}}, nil
	}
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return f.directory(name)
	}
	data, err := readFile(name)
	return []Source{{name, data}}, err
}

func readFile(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := readBounded(file)
	if err != nil {
		return nil, fmt.Errorf("while reading %s: %w", name, err)
	}
	return data, nil
}

// readBounded reads all, or refuses what is too large to be a manifest.
func readBounded(from io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(from, mostBytes+1))
	if err == nil && len(data) > mostBytes {
		err = fmt.Errorf("it has more than %d bytes: give its objects in several files", mostBytes)
	}
	return data, err
}

// directory reads the manifests of a directory.
func (f *Files) directory(dir string) ([]Source, error) {
	var all []Source
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != dir && !f.Recursive:
			return fs.SkipDir
		case d.IsDir(), !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)):
			return nil
		}
		data, err := readFile(path)
		all = append(all, Source{path, data})
		return err
	})
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("directory %s has no file that ends in .yaml, .yml or .json", dir)
	}
	return all, err
}

func fetch(url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), fetchTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answered %s", response.Status)
	}
	return readBounded(response.Body)
}

// kustomized is what a kustomization makes.
func kustomized(dir string) ([]Source, error) {
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, fmt.Errorf("while reading the kustomization %s: %w", dir, err)
	}
	data, err := made.AsYaml()
	return []Source{{"kustomization " + dir, data}}, err
}
