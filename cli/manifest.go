package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/cli/convert"
	"github.com/holdfast-storage/holdfast/cli/kube"
	"github.com/holdfast-storage/holdfast/cli/lines"
)

// object is one document of a manifest, with where it was found for error messages.
type object struct {
	*unstructured.Unstructured
	source string
	// file is the text that it is in, for the lines of its fields.
	file []byte
}

// String names the object as people write it: storagecluster/ceph.
func (o object) String() string {
	return strings.ToLower(o.GetKind()) + "/" + o.GetName()
}

// linesOf names the lines of the fields that an error is about.
func (o object) linesOf(err error) string {
	if len(o.file) == 0 {
		return ""
	}
	at := lines.Place{Data: o.file, Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName()}
	return at.Text(err)
}

// readManifests reads all documents of the files, and tells of all that are wrong. Objects without a
// namespace get this one.
func readManifests(files kube.Files, stdin io.Reader, namespace string) ([]object, error) {
	if !files.Given() {
		return nil, &exitError{exitUsage, errors.New("give a file with -f FILE (or -f - for standard input)")}
	}
	sources, err := files.Read(stdin)
	if err != nil {
		return nil, err
	}
	var all []object
	var faults []error
	for _, s := range sources {
		if err := kube.RefuseRepeatedKeys(s.Data, s.Name); err != nil {
			faults = append(faults, err)
			continue
		}
		objects, err := parseManifest(s.Data, s.Name, namespace)
		faults = append(faults, err)
		all = append(all, objects...)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, &exitError{exitRefused, err}
	}
	if len(all) == 0 {
		return nil, &exitError{exitRefused, fmt.Errorf("%s: it contains no object", sources[0].Name)}
	}
	if err := refuseTwins(all); err != nil {
		return nil, &exitError{exitRefused, err}
	}
	return all, nil
}

func parseManifest(data []byte, file, namespace string) ([]object, error) {
	var objects []object
	var faults []error
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for n := 1; ; n++ {
		var u unstructured.Unstructured
		err := decoder.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			return objects, errors.Join(faults...)
		}
		source := fmt.Sprintf("%s, document %d", file, n)
		if err != nil {
			return nil, errors.Join(append(faults, fmt.Errorf("%s: %w", source, plainDecoding(err)))...)
		}
		if len(u.Object) == 0 {
			continue
		}
		for _, o := range membersOf(object{&u, source, data}) {
			if err := checkDocument(o); err != nil {
				faults = append(faults, err)
				continue
			}
			if o.GetNamespace() == "" && o.GetKind() != "Namespace" && o.GetKind() != "Host" {
				o.SetNamespace(namespace)
			}
			kube.OptionsAsText(o.Unstructured)
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
		all = append(all, object{u, fmt.Sprintf("%s, item %d", o.source, i+1), o.file})
	}
	return all
}

func checkDocument(o object) error {
	foreign := convert.Refuse(o.source, o.file, o.Object)
	switch {
	case foreign != nil:
		return foreign
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
