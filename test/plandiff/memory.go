package main

import (
	"regexp"
	"slices"
	"strings"

	"github.com/holdfast-storage/holdfast/internal/leadermemory"
)

// memoryInSpec has the leader's memory of each daemon in a plan stand in the parameters of its
// spec, where versions before 2026-11-26 had it, and the sentences speak of it as they did.
func memoryInSpec(value any) any {
	switch v := value.(type) {
	case map[string]any:
		moveMemory(v)
		for key := range v {
			v[key] = memoryInSpec(v[key])
		}
	case []any:
		for i := range v {
			v[i] = memoryInSpec(v[i])
		}
	case string:
		return oldSentence(v)
	}
	return value
}

// moveMemory changes a Daemon.
func moveMemory(d map[string]any) {
	meta, _ := d["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	spec, _ := d["spec"].(map[string]any)
	parameters, _ := spec["parameters"].(map[string]any)
	if parameters == nil {
		return
	}
	for key, value := range annotations {
		if name, is := strings.CutPrefix(key, leadermemory.Prefix); is {
			parameters[name] = value
			delete(annotations, key)
		}
	}
	if len(annotations) == 0 {
		delete(meta, "annotations")
	}
}

const memoryChanges = `the leader's memory of it changes \(([^)]*)\)`

var (
	bothChange = regexp.MustCompile(`its parameters change \(([^)]*)\), ` + memoryChanges)
	oneChanges = regexp.MustCompile(memoryChanges)
)

func oldSentence(text string) string {
	text = bothChange.ReplaceAllStringFunc(text, func(s string) string {
		found := bothChange.FindStringSubmatch(s)
		names := strings.Split(found[1]+", "+found[2], ", ")
		slices.Sort(names)
		return "its parameters change (" + strings.Join(slices.Compact(names), ", ") + ")"
	})
	return oneChanges.ReplaceAllString(text, "its parameters change ($1)")
}
