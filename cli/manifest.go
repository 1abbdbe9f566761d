package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// object is one document of a manifest, with where it was found for error messages.
type object struct {
	*unstructured.Unstructured
	source string
}

// String names the object as people write it: storagecluster/ceph.
func (o object) String() string {
	return strings.ToLower(o.GetKind()) + "/" + o.GetName()
}

// readManifests reads all documents of the files; "-" is standard input. Objects without a namespace get this one.
func readManifests(files []string, stdin io.Reader, namespace string) ([]object, error) {
	if len(files) == 0 {
		return nil, &exitError{exitUsage, errors.New("give a file with -f FILE (or -f - for standard input)")}
	}
	var all []object
	for _, file := range files {
		data, err := readFile(file, stdin)
		if err != nil {
			return nil, err
		}
		if file == "-" {
			file = "standard input"
		}
		if err := refuseRepeatedKeys(data, file); err != nil {
			return nil, &exitError{exitRefused, err}
		}
		objects, err := parseManifest(data, file, namespace)
		if err != nil {
			return nil, &exitError{exitRefused, err}
		}
		all = append(all, objects...)
	}
	if len(all) == 0 {
		return nil, &exitError{exitRefused, fmt.Errorf("%s: it contains no object", strings.Join(files, ", "))}
	}
	if err := refuseTwins(all); err != nil {
		return nil, &exitError{exitRefused, err}
	}
	return all, nil
}

func readFile(file string, stdin io.Reader) ([]byte, error) {
	if file == "-" {
		data, err := io.ReadAll(stdin)
		if err != nil {
			return nil, fmt.Errorf("while reading standard input: %w", err)
		}
		return data, nil
	}
	return os.ReadFile(file)
}

func parseManifest(data []byte, file, namespace string) ([]object, error) {
	var objects []object
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for n := 1; ; n++ {
		var u unstructured.Unstructured
		err := decoder.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		source := fmt.Sprintf("%s, document %d", file, n)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", source, plainDecoding(err))
		}
		if len(u.Object) == 0 {
			continue
		}
		for _, o := range membersOf(object{&u, source}) {
			if err := checkDocument(o); err != nil {
				return nil, err
			}
			if o.GetNamespace() == "" && o.GetKind() != "Namespace" && o.GetKind() != "Host" {
				o.SetNamespace(namespace)
			}
			objects = append(objects, o)
		}
	}
}

// plainDecoding is why a document cannot be read, without the types of this program.
func plainDecoding(err error) error {
	if _, what, found := strings.Cut(err.Error(), "json: cannot unmarshal "); found {
		what, _, _ = strings.Cut(what, " ")
		return fmt.Errorf("this is a %s, not an object: an object begins with apiVersion, kind and metadata", what)
	}
	return err
}

// membersOf are the objects of a list, such as 'get -o yaml' prints of many, or else the one that it is. The API leaves out of a list of one kind what
// kind its members are.
func membersOf(o object) []object {
	kind, isList := strings.CutSuffix(o.GetKind(), "List")
	items, _ := o.Object["items"].([]any)
	if !isList || items == nil {
		return []object{o}
	}
	var all []object
	for i, item := range items {
		content, _ := item.(map[string]any)
		u := &unstructured.Unstructured{Object: content}
		if content != nil && kind != "" && u.GetKind() == "" {
			u.SetKind(kind)
			u.SetAPIVersion(o.GetAPIVersion())
		}
		all = append(all, object{u, fmt.Sprintf("%s, item %d", o.source, i+1)})
	}
	return all
}

func checkDocument(o object) error {
	switch {
	case o.GetKind() == "" || o.GetAPIVersion() == "":
		return fmt.Errorf("%s: kind and apiVersion are missing (apiVersion: %s)", o.source, api.GroupVersion)
	case o.GetName() == "":
		return fmt.Errorf("%s: %s has no metadata.name", o.source, o.GetKind())
	}
	return nil
}

func refuseTwins(objects []object) error {
	seen := map[string]string{}
	for _, o := range objects {
		key := o.GroupVersionKind().GroupKind().String() + "/" + o.GetNamespace() + "/" + o.GetName()
		if first, twice := seen[key]; twice {
			return fmt.Errorf("%s: %s occurs twice, first in %s", o.source, o, first)
		}
		seen[key] = o.source
	}
	return nil
}
