#pragma once

/// Everything a training program needs: graphs of stages, parallel layers, pools of actors.

#include <troupe/actors/runtime.hpp>
#include <troupe/base/units.hpp>
#include <troupe/parallel/attention.hpp>
#include <troupe/parallel/collectives.hpp>
#include <troupe/parallel/linear.hpp>
#include <troupe/parallel/vocab.hpp>
#include <troupe/stage/environment.hpp>
#include <troupe/stage/graph.hpp>
