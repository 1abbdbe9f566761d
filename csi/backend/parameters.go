package backend

// The parameters of a class that name its StorageCluster. Holdfast sets them in the classes that it
// makes.
const (
	ParameterNamespace = "namespace"
	ParameterCluster   = "cluster"
)
