// The norms that are recorded for layers and heads.
import {
  headNorm,
  layerNorm,
  type HeadQuantity,
  type LayerQuantity,
  type NormChoice,
  type Pick,
} from '../curves/metrics';

export interface Quantity {
  id: HeadQuantity | LayerQuantity;
  title: string;
  tex: string;
  short: string; // beside the tex
  about: string;
}

export const quantities: Quantity[] = [
  {
    id: 'weight',
    title: 'Norm of the attention matrix',
    tex: '\\lVert A\\rVert_F',
    short: 'attention matrix',
    about: 'Frobenius norm. Softmax cannot leave the range from 1 to √N.',
  },
  {
    id: 'jacobian',
    title: 'Norm of its Jacobian',
    tex: '\\lVert \\partial A/\\partial S\\rVert_F',
    short: 'its Jacobian',
    about: 'How strongly weights answer to scores. Softmax stays below √N/2.',
  },
  {
    id: 'score',
    title: 'Largest score',
    tex: '\\max|s_{ij}|',
    short: 'largest score',
    about: 'Before the activation.',
  },
  {
    id: 'gradient',
    title: 'Gradient norm of the block',
    tex: '\\lVert \\nabla\\rVert',
    short: 'gradient of the block',
    about: 'Of the parameters of a layer.',
  },
];

export function pickOf(id: Quantity['id'], choice: NormChoice): Pick {
  return id === 'gradient' || id === 'parameters' ? layerNorm(id, choice) : headNorm(id, choice);
}
