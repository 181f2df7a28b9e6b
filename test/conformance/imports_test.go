package conformance

import (
	_ "github.com/cockroachdb/datadriven"
	_ "github.com/stretchr/testify/mock"
	_ "go.uber.org/goleak"
	_ "golang.org/x/tools/go/packages"
	_ "k8s.io/kubernetes/cmd/kubelet/app"
	_ "k8s.io/kubernetes/test/utils/ktesting"
	_ "pgregory.net/rapid"
)
