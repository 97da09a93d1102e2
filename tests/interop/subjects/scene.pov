// SPDX-License-Identifier: LGPL-2.1-or-later
// Reflection, refraction and soft shadows: enough work for every block that the workers share out.
#version 3.7;
global_settings { assumed_gamma 1.0 max_trace_level 6 }
camera { location <0, 3, -8> look_at <0, 1, 0> angle 45 }
light_source { <6, 10, -6> rgb 1 area_light <2, 0, 0>, <0, 0, 2>, 4, 4 }
background { rgb <0.2, 0.3, 0.5> }
plane { y, 0 pigment { checker rgb 0.9, rgb 0.2 scale 0.7 } finish { reflection 0.15 } }
#declare I = 0;
#while (I < 12)
    sphere {
        <2.5 * cos(I * pi / 6), 0.6 + 0.3 * mod(I, 3), 2.5 * sin(I * pi / 6)>, 0.55
        #if (mod(I, 2))
            pigment { rgbt <0.9, 0.9, 1, 0.8> } interior { ior 1.4 } finish { specular 0.6 }
        #else
            pigment { rgb <0.8, 0.3 + I / 20, 0.2> } finish { reflection 0.4 phong 0.8 }
        #end
    }
    #declare I = I + 1;
#end
torus { 1.2, 0.25 rotate x * 20 translate y * 1.6 pigment { rgb <0.9, 0.8, 0.2> } finish { reflection 0.3 } }
